"""Known mistakes of 02_lunar_lander: wrong versions of compute_advantages."""

import torch

from grading.mistakes import Book

MISTAKES = Book()
mistake = MISTAKES.add


# One recursion with the places at which it can go wrong as arguments. All are [N, T]; `ended` is what cuts the sum.

def gae(ppo, states, rewards, next_states, terminations, truncations=None, *, delta=None, weight=None, cut=None,
        targets=None, rows=None):
    """GAE with replaced parts.

    delta    (r, v, next_v, terminated) -> TD errors
    weight   ppo -> factor of the next advantage
    cut      (ended, t) -> [N] bool, does the sum stop at t
    targets  (advantages, v, delta) -> critic targets
    """
    T = ppo.num_steps
    rows = rows or (lambda x: x.reshape(-1, T).float())
    with torch.no_grad():
        v, next_v = (rows(ppo.critic(x).squeeze(-1)) for x in (states, next_states))
    r, terminated = rows(rewards), rows(terminations)
    ended = terminated.bool() | (rows(truncations).bool() if truncations is not None else False)
    delta = (delta or _td_error(ppo))(r, v, next_v, terminated)
    factor = ppo.gamma * ppo.lmbda if weight is None else weight(ppo)
    advantages = torch.zeros_like(delta)
    carried = torch.zeros(len(delta))
    for t in reversed(range(delta.shape[1])):
        stop = ended[:, t] if cut is None else cut(ended, t)
        carried = delta[:, t] + factor * torch.where(stop, 0.0, carried)
        advantages[:, t] = carried
    targets = advantages + v if targets is None else targets(advantages, v, delta)
    return advantages.reshape(-1), targets.reshape(-1)


def _td_error(ppo):
    return lambda r, v, next_v, terminated: r + ppo.gamma * next_v * (1 - terminated) - v


def _never(ended, t):
    return torch.zeros(len(ended), dtype=torch.bool)


@mistake("compute_advantages",
         nudge="What is the value of a state after which nothing comes?",
         pointer="You bootstrap at a terminal state: the TD error still adds gamma * V(s') where terminations is 1.",
         answer="Multiply gamma * V(s') in the TD error by (1 - terminations).")
def terminal_state_bootstrapped(ppo, *batch):
    return gae(ppo, *batch, delta=lambda r, v, next_v, d: r + ppo.gamma * next_v - v)


@mistake("compute_advantages",
         nudge="Which TD errors belong to the episode that step t is part of?",
         pointer="The sum over TD errors runs across an episode's end: it keeps adding gamma * lambda * A(t+1) there.",
         answer="In the recursion, multiply the next advantage by (1 - terminations), and by (1 - truncations) if given.")
def sum_not_cut(ppo, *batch):
    return gae(ppo, *batch, cut=_never)


@mistake("compute_advantages",
         nudge="Where does your code use terminations?",
         pointer="Episode ends are ignored altogether: both the bootstrap and the sum run on into the next episode.",
         answer="Terminations belong in two places: (1 - d) * gamma * V(s') in the TD error, and (1 - d) before the next "
                "advantage in the recursion.")
def ends_ignored(ppo, *batch):
    return gae(ppo, *batch, delta=lambda r, v, next_v, d: r + ppo.gamma * next_v - v, cut=_never)


@mistake("compute_advantages",
         nudge="At a terminal step, which parts of r + gamma V(s') - V(s) are still there?",
         pointer="Your (1 - terminations) covers V(s) too; at an end only gamma * V(s') goes, the baseline V(s) stays.",
         answer="delta = r + gamma * V(s') * (1 - d) - V(s): the bracket closes before V(s).")
def mask_covers_the_baseline(ppo, *batch):
    return gae(ppo, *batch, delta=lambda r, v, next_v, d: r + (ppo.gamma * next_v - v) * (1 - d))


@mistake("compute_advantages",
         nudge="What does terminations hold where an episode goes on, 0 or 1?",
         pointer="Your mask is inverted: you bootstrap only where the episode has terminated.",
         answer="The factor is 1 - terminations, not terminations.")
def mask_inverted(ppo, *batch):
    return gae(ppo, *batch, delta=lambda r, v, next_v, d: r + ppo.gamma * next_v * d - v, cut=lambda e, t: ~e[:, t])


@mistake("compute_advantages",
         nudge="Look at the step just before an episode ends: is its sum complete?",
         pointer="The sum is cut one step too early: step t uses the flag of step t+1.",
         answer="terminations[t] says that the step from s_t ended the episode: cut A(t+1) with the flag of the same t.")
def cut_one_step_early(ppo, *batch):
    return gae(ppo, *batch, cut=lambda e, t: e[:, t + 1] if t + 1 < e.shape[1] else e[:, t])


@mistake("compute_advantages",
         nudge="Look at the step just after an episode's end, and at the ending step itself.",
         pointer="The sum is cut one step too late: step t uses the flag of step t-1.",
         answer="terminations[t] says that the step from s_t ended the episode: cut A(t+1) with the flag of the same t.")
def cut_one_step_late(ppo, *batch):
    return gae(ppo, *batch, cut=lambda e, t: e[:, t - 1] if t else _never(e, t))


@mistake("compute_advantages",
         nudge="Rows 0..T-1 are environment 0. What comes after its last row?",
         pointer="One sum runs over all rows: the first step of an environment leaks into the last step of the one before.",
         answer="Reshape to [num_envs, T] and start the recursion with 0 for every environment.")
def leaks_between_environments(ppo, states, rewards, next_states, terminations, truncations=None):
    T, ppo.num_steps = ppo.num_steps, len(states)
    try:
        return gae(ppo, states, rewards, next_states, terminations, truncations)
    finally:
        ppo.num_steps = T


@mistake("compute_advantages",
         nudge="Which environment owns row 1?",
         pointer="You read the rows as time-major; they are env-major: environment i owns rows i*T to (i+1)*T - 1.",
         answer="reshape(-1, T), not reshape(T, -1).")
def rows_read_time_major(ppo, *batch):
    N = len(batch[0]) // ppo.num_steps
    advantages, targets = gae(ppo, *batch, rows=lambda x: x.reshape(-1, N).T.float())
    return tuple(x.reshape(N, -1).T.reshape(-1) for x in (advantages, targets))


@mistake("compute_advantages",
         nudge="Your sum has one decay factor. How many should it have?",
         pointer="Lambda is missing: the next advantage is weighted by gamma alone.",
         answer="A(t) = delta(t) + gamma * lambda * A(t+1).")
def lambda_missing(ppo, *batch):
    return gae(ppo, *batch, weight=lambda ppo: ppo.gamma)


@mistake("compute_advantages",
         nudge="Your sum has one decay factor. How many should it have?",
         pointer="Gamma is missing in the recursion: the next advantage is weighted by lambda alone.",
         answer="A(t) = delta(t) + gamma * lambda * A(t+1).")
def gamma_missing_in_the_sum(ppo, *batch):
    return gae(ppo, *batch, weight=lambda ppo: ppo.lmbda)


@mistake("compute_advantages",
         nudge="How far in the future is V(s'), seen from s?",
         pointer="Gamma is missing in the TD error: V(s') is not discounted.",
         answer="delta = r + gamma * V(s') * (1 - d) - V(s).")
def gamma_missing_in_delta(ppo, *batch):
    return gae(ppo, *batch, delta=lambda r, v, next_v, d: r + next_v * (1 - d) - v)


@mistake("compute_advantages",
         nudge="Which of the two, gamma or lambda, belongs into a one-step TD error?",
         pointer="Lambda stands in the TD error; it belongs only into the sum of TD errors.",
         answer="delta = r + gamma * V(s') * (1 - d) - V(s), without lambda.")
def lambda_in_delta(ppo, *batch):
    return gae(ppo, *batch, delta=lambda r, v, next_v, d: r + ppo.gamma * ppo.lmbda * next_v * (1 - d) - v)


@mistake("compute_advantages",
         nudge="What would you get with lambda = 0? Compare.",
         pointer="You return the one-step TD errors; the sum over later steps is missing.",
         answer="Go backwards: A(t) = delta(t) + gamma * lambda * (1 - d) * A(t+1).")
def only_the_td_error(ppo, *batch):
    return gae(ppo, *batch, weight=lambda ppo: 0.0)


@mistake("compute_advantages",
         nudge="What would you get with lambda = 1? Compare.",
         pointer="You sum as if lambda were 1 and gamma too: later TD errors are not discounted at all.",
         answer="Weight the next advantage by gamma * lambda.")
def sum_not_discounted(ppo, *batch):
    return gae(ppo, *batch, weight=lambda ppo: 1.0)


@mistake("compute_advantages",
         nudge="Does A(t) depend on the steps before t or on the steps after t?",
         pointer="Your recursion runs forwards in time; an advantage sums what comes AFTER the action.",
         answer="for t in reversed(range(T)).")
def recursion_runs_forwards(ppo, states, rewards, next_states, terminations, truncations=None):
    T = ppo.num_steps
    with torch.no_grad():
        v, next_v = (ppo.critic(x).reshape(-1, T) for x in (states, next_states))
    r, d = rewards.reshape(-1, T), terminations.reshape(-1, T)
    ended = d.bool() | (truncations.reshape(-1, T).bool() if truncations is not None else False)
    delta = _td_error(ppo)(r, v, next_v, d)
    advantages, carried = torch.zeros_like(delta), torch.zeros(len(delta))
    for t in range(T):
        carried = delta[:, t] + ppo.gamma * ppo.lmbda * torch.where(ended[:, t], 0.0, carried)
        advantages[:, t] = carried
    return advantages.reshape(-1), (advantages + v).reshape(-1)


@mistake("compute_advantages",
         nudge="With which power does delta(t) itself enter A(t)?",
         pointer="Every term has one factor gamma * lambda too many: a widespread typo in the exponent.",
         answer="The exponent of the TD error k steps ahead is k: A(t) starts with delta(t) itself, unweighted.")
def exponent_one_too_high(ppo, *batch):
    factor = ppo.gamma * ppo.lmbda
    advantages, targets = gae(ppo, *batch)
    return factor * advantages, targets - advantages + factor * advantages


@mistake("compute_advantages",
         nudge="The last step of the batch has an advantage too.",
         pointer="The last step of each environment gets no advantage: your loop starts one step too early.",
         answer="The recursion starts at t = T - 1 with A(T) = 0, so A(T-1) = delta(T-1).")
def last_step_left_out(ppo, *batch):
    T = ppo.num_steps

    def delta(r, v, next_v, d):
        return torch.where(torch.arange(T) == T - 1, 0.0, _td_error(ppo)(r, v, next_v, d))
    return gae(ppo, *batch, delta=delta)


@mistake("compute_advantages",
         nudge="The rollout stops at the last row, but does the episode?",
         pointer="The end of the batch is treated as the end of an episode: V(s') of the last step is missing.",
         answer="Bootstrap at the last row as anywhere else; only terminations remove V(s').")
def batch_end_is_terminal(ppo, *batch):
    T = ppo.num_steps
    return gae(ppo, *batch, delta=lambda r, v, next_v, d:
               _td_error(ppo)(r, v, torch.where(torch.arange(T) == T - 1, 0.0, next_v), d))


@mistake("compute_advantages",
         nudge="Is a good action one that brings more than expected, or less?",
         pointer="The sign is wrong: your advantages are V(s) - (r + gamma V(s')).",
         answer="delta = r + gamma * V(s') * (1 - d) - V(s).")
def sign_flipped(ppo, *batch):
    return gae(ppo, *batch, delta=lambda r, v, next_v, d: v - r - ppo.gamma * next_v * (1 - d))


@mistake("compute_advantages",
         nudge="Better than what?",
         pointer="The baseline is missing: V(s) is never subtracted.",
         answer="delta = r + gamma * V(s') * (1 - d) - V(s).")
def baseline_missing(ppo, *batch):
    return gae(ppo, *batch, delta=lambda r, v, next_v, d: r + ppo.gamma * next_v * (1 - d))


@mistake("compute_advantages",
         nudge="Two sets of states come in. Which one is the baseline taken from?",
         pointer="You bootstrap from V(s_t) itself: next_states is not used.",
         answer="delta uses two values: V(next_states), discounted, and V(states), subtracted.")
def next_states_unused(ppo, *batch):
    return gae(ppo, *batch, delta=lambda r, v, next_v, d: r + ppo.gamma * v * (1 - d) - v)


@mistake("compute_advantages",
         nudge="Which reward does the action in row t receive?",
         pointer="The rewards are shifted by one: step t uses the reward of step t+1.",
         answer="rewards[t] is the reward for leaving states[t]: use the same index.")
def rewards_shifted(ppo, *batch):
    return gae(ppo, *batch, delta=lambda r, v, next_v, d: _td_error(ppo)(torch.cat([r[:, 1:], r[:, -1:]], 1), v, next_v, d))


@mistake("compute_advantages",
         nudge="What should the critic predict: how much better than expected, or how much in all?",
         pointer="critic_targets are the advantages themselves; V(s) is not added back.",
         answer="critic_targets = advantages + V(states).")
def targets_without_values(ppo, *batch):
    return gae(ppo, *batch, targets=lambda advantages, v, delta: advantages)


@mistake("compute_advantages",
         nudge="Which estimate of the return goes with GAE's advantage?",
         pointer="critic_targets are one-step targets, r + gamma V(s'); they should use the whole lambda-sum.",
         answer="critic_targets = advantages + V(states).")
def targets_one_step(ppo, *batch):
    return gae(ppo, *batch, targets=lambda advantages, v, delta: delta + v)


@mistake("compute_advantages",
         nudge="A = Q - V. Solve for Q.",
         pointer="critic_targets subtract V(s) where it should be added.",
         answer="critic_targets = advantages + V(states).")
def targets_subtract_values(ppo, *batch):
    return gae(ppo, *batch, targets=lambda advantages, v, delta: advantages - v)


@mistake("compute_advantages",
         nudge="Who else normalises advantages?",
         pointer="You normalise the advantages here; the training loop does it, per minibatch.",
         answer="Return the advantages as the recursion gives them.")
def normalised_inside(ppo, *batch):
    advantages, targets = gae(ppo, *batch)
    return (advantages - advantages.mean()) / (advantages.std(unbiased=False) + 1e-8), targets


@mistake("compute_advantages",
         nudge="In which order are the two results promised?",
         pointer="The two results are swapped.",
         answer="return advantages, critic_targets")
def results_swapped(ppo, *batch):
    return gae(ppo, *batch)[::-1]


@mistake("compute_advantages",
         nudge="May the gradient of the losses flow back through the advantages?",
         pointer="The results carry a gradient into the critic: compute the values without one.",
         answer="Compute the values under torch.no_grad(), or detach() both results.")
def not_detached(ppo, *batch):
    advantages, targets = gae(ppo, *batch)
    attached = 0.0 * ppo.critic(batch[0]).squeeze(-1)
    return advantages + attached, targets + attached


@mistake("compute_advantages",
         nudge="Which of the two results do the losses treat as constants?",
         pointer="critic_targets carry a gradient: the critic would learn by moving its own target.",
         answer="Add V(s) without its gradient: (advantages + values).detach().")
def targets_not_detached(ppo, *batch):
    advantages, targets = gae(ppo, *batch)
    return advantages, targets + 0.0 * ppo.critic(batch[0]).squeeze(-1)


@mistake("compute_advantages",
         nudge="After a time limit, does the world end or only the recording?",
         pointer="A truncation is treated as a termination: V(s') is dropped where only the time ran out.",
         answer="Only terminations mask V(s'); truncations cut the sum and nothing else.")
def truncation_is_terminal(ppo, states, rewards, next_states, terminations, truncations=None):
    if truncations is not None:
        terminations = torch.maximum(terminations, truncations)
    return gae(ppo, states, rewards, next_states, terminations)


@mistake("compute_advantages",
         nudge="What is the row after a truncation: the same episode, or a new one?",
         pointer="Truncations do not cut the sum: a new episode leaks into the old one.",
         answer="Multiply the next advantage by (1 - terminations) * (1 - truncations).")
def truncation_ignored(ppo, states, rewards, next_states, terminations, truncations=None):
    return gae(ppo, states, rewards, next_states, terminations)


@mistake("compute_advantages",
         nudge="A row of values minus a column of values: what shape does that have?",
         pointer="The critic's output keeps its last dimension: [B, 1] - [B] broadcasts to [B, B].",
         answer="values = self.compute_values(states), or self.critic(states).squeeze(-1).")
def column_minus_row(ppo, states, rewards, next_states, terminations, truncations=None):
    with torch.no_grad():
        v, next_v = ppo.critic(states), ppo.critic(next_states)
    delta = rewards + ppo.gamma * next_v * (1 - terminations) - v
    return delta, delta + v


@mistake("compute_advantages",
         nudge="Which shape do the inputs have, and which one is promised for the results?",
         pointer="The results are [num_envs, T]; promised are flat rows like the inputs'.",
         answer="Flatten at the end: advantages.reshape(-1).")
def results_not_flat(ppo, *batch):
    return tuple(x.reshape(-1, ppo.num_steps) for x in gae(ppo, *batch))


@mistake("compute_advantages",
         nudge="What do the caller's tensors hold after your function has run?",
         pointer="The rewards that came in are changed in place; the caller still needs them.",
         answer="Write x = x * y instead of x *= y, or clone() first.")
def inputs_changed(ppo, states, rewards, next_states, terminations, truncations=None):
    result = gae(ppo, states, rewards, next_states, terminations, truncations)
    rewards += 1.0
    return result
