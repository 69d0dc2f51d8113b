"""Known mistakes of 04_continuous_control: bootstrap_truncations and gae. All are [T, N]."""

import torch

from grading.mistakes import Book

MISTAKES = Book()
mistake = MISTAKES.add


@mistake("bootstrap_truncations",
         nudge="After a cut, whose state is in row t+1?",
         pointer="final_values are not used: after a cut you bootstrap from the first state of the next episode.",
         answer="torch.where(truncated, final_values, next_values).")
def reset_state_bootstrapped(values, last_values, truncated, final_values):
    return torch.cat([values[1:], last_values[None]])


@mistake("bootstrap_truncations",
         nudge="The clock has cut. Would nothing have followed?",
         pointer="A truncated step gets the value 0, as if it had terminated.",
         answer="Where truncated: final_values.")
def cut_taken_for_an_end(values, last_values, truncated, final_values):
    return torch.where(truncated, 0.0, torch.cat([values[1:], last_values[None]]))


@mistake("bootstrap_truncations",
         nudge="Which state does V(s_{t+1}) belong to at a cut: the one before the action, or the one after?",
         pointer="At a cut you take V(s_t), the state before the last action.",
         answer="Where truncated: final_values, the critic's word on the true last observation.")
def state_before_the_cut(values, last_values, truncated, final_values):
    return torch.where(truncated, values, torch.cat([values[1:], last_values[None]]))


@mistake("bootstrap_truncations",
         nudge="Where does truncated say yes?",
         pointer="The condition is inverted: final_values stand everywhere but at the cuts.",
         answer="torch.where(truncated, final_values, next_values): the first is taken where the condition holds.")
def condition_inverted(values, last_values, truncated, final_values):
    return torch.where(truncated, torch.cat([values[1:], last_values[None]]), final_values)


@mistake("bootstrap_truncations",
         nudge="Replace, or add?",
         pointer="final_values are added to the value of the reset state; they must replace it.",
         answer="torch.where, not a sum.")
def final_values_added(values, last_values, truncated, final_values):
    return torch.cat([values[1:], last_values[None]]) + final_values * truncated


@mistake("bootstrap_truncations",
         nudge="Row t of the result speaks of s_{t+1}. Which row of values is that?",
         pointer="The values are not shifted: row t holds V(s_t), not V(s_{t+1}).",
         answer="torch.cat([values[1:], last_values[None]]).")
def not_shifted(values, last_values, truncated, final_values):
    return torch.where(truncated, final_values, values)


@mistake("bootstrap_truncations",
         nudge="What follows the last row of the rollout?",
         pointer="The last row gets 0; the rollout has ended, the episode has not.",
         answer="The last row is last_values.")
def last_row_zero(values, last_values, truncated, final_values):
    return torch.where(truncated, final_values, torch.cat([values[1:], torch.zeros_like(values[:1])]))


@mistake("bootstrap_truncations",
         nudge="What follows the last row of the rollout?",
         pointer="The last row repeats the last of values; it must be last_values.",
         answer="torch.cat([values[1:], last_values[None]]).")
def last_row_repeated(values, last_values, truncated, final_values):
    return torch.where(truncated, final_values, torch.cat([values[1:], values[-1:]]))


@mistake("bootstrap_truncations",
         nudge="What follows the last row? And is the first row the successor of the last?",
         pointer="The values are rolled round: the last row gets those of the first.",
         answer="torch.cat([values[1:], last_values[None]]), not torch.roll.")
def rolled_round(values, last_values, truncated, final_values):
    return torch.where(truncated, final_values, torch.roll(values, -1, 0))


@mistake("bootstrap_truncations",
         nudge="Can a cut happen in the last row too?",
         pointer="In the last row the cuts are overlooked: last_values stand there even where the clock has cut.",
         answer="Shift first, then replace where truncated, in all T rows.")
def cuts_at_the_border_overlooked(values, last_values, truncated, final_values):
    return torch.cat([torch.where(truncated[:-1], final_values[:-1], values[1:]), last_values[None]])


@mistake("bootstrap_truncations",
         nudge="At which t is the flag: at the step that was cut, or at the one after it?",
         pointer="The replacement comes one row too late.",
         answer="truncated[t] speaks of the step from s_t: use the flag of the same row.")
def replaced_one_row_late(values, last_values, truncated, final_values):
    late = torch.cat([torch.zeros_like(truncated[:1]), truncated[:-1]])
    return torch.where(late, final_values.roll(1, 0), torch.cat([values[1:], last_values[None]]))


# gae ------------------------------------------------------------------------------------------------------------------

def recursion(rewards, values, next_values, terminated, truncated, gamma, lam, *, delta=None, cut=None, weight=None,
              later=None, returns=None):
    """GAE with replaced parts."""
    d, c = terminated.float(), truncated.float()
    deltas = rewards + gamma * next_values * (1 - d) - values if delta is None else delta
    cut = torch.maximum(d, c) if cut is None else cut
    weight = gamma * lam if weight is None else weight
    advantages, running = torch.zeros_like(deltas), torch.zeros_like(deltas[0]) if later is None else later
    for t in reversed(range(len(deltas))):
        running = deltas[t] + weight * (1 - cut[t]) * running
        advantages[t] = running
    return advantages, advantages + values if returns is None else returns(advantages)


@mistake("gae",
         nudge="What is the value of a state after which nothing comes?",
         pointer="You bootstrap where the episode has terminated.",
         answer="gamma * next_values * ~terminated.")
def terminated_bootstrapped(r, v, n, d, c, gamma, lam):
    return recursion(r, v, n, d, c, gamma, lam, delta=r + gamma * n - v)


@mistake("gae",
         nudge="The clock has cut. Would nothing have followed?",
         pointer="You drop the bootstrap at a truncation: a good walker is told that its state is worth nothing.",
         answer="Only terminated multiplies next_values.")
def truncated_not_bootstrapped(r, v, n, d, c, gamma, lam):
    return recursion(r, v, n, d, c, gamma, lam, delta=r + gamma * n * ~(d | c) - v)


@mistake("gae",
         nudge="Which TD errors belong to the episode that step t is part of?",
         pointer="The sum runs on across a truncation into the next episode.",
         answer="Multiply the next advantage by ~(terminated | truncated).")
def sum_runs_over_truncations(r, v, n, d, c, gamma, lam):
    return recursion(r, v, n, d, c, gamma, lam, cut=d.float())


@mistake("gae",
         nudge="Which TD errors belong to the episode that step t is part of?",
         pointer="The sum runs on across a termination into the next episode.",
         answer="Multiply the next advantage by ~(terminated | truncated).")
def sum_runs_over_terminations(r, v, n, d, c, gamma, lam):
    return recursion(r, v, n, d, c, gamma, lam, cut=c.float())


@mistake("gae",
         nudge="What stops your sum?",
         pointer="The sum is never cut: advantages of the next episode flow into this one.",
         answer="Multiply the next advantage by ~(terminated | truncated).")
def sum_never_cut(r, v, n, d, c, gamma, lam):
    return recursion(r, v, n, d, c, gamma, lam, cut=torch.zeros_like(r))


@mistake("gae",
         nudge="Two flags, two duties. Which does which?",
         pointer="The two flags are swapped: terminated steps bootstrap and truncated ones do not.",
         answer="terminated stops the bootstrap; either of them stops the sum.")
def flags_swapped(r, v, n, d, c, gamma, lam):
    return recursion(r, v, n, c, d, gamma, lam)


@mistake("gae",
         nudge="Where do the flags appear in your code?",
         pointer="Episode ends are ignored altogether.",
         answer="~terminated before the bootstrap; ~(terminated | truncated) before the next advantage.")
def ends_ignored(r, v, n, d, c, gamma, lam):
    return recursion(r, v, n, d, c, gamma, lam, delta=r + gamma * n - v, cut=torch.zeros_like(r))


@mistake("gae",
         nudge="At a terminated step, which parts of r + gamma V(s') - V(s) are still there?",
         pointer="The mask covers V(s) too; at an end only gamma * V(s') goes.",
         answer="rewards + gamma * next_values * ~terminated - values.")
def mask_covers_the_baseline(r, v, n, d, c, gamma, lam):
    return recursion(r, v, n, d, c, gamma, lam, delta=r + (gamma * n - v) * ~d)


@mistake("gae",
         nudge="Your sum has one factor. How many symbols are in it?",
         pointer="Lambda is missing in the recursion.",
         answer="gamma * lam.")
def lambda_missing(r, v, n, d, c, gamma, lam):
    return recursion(r, v, n, d, c, gamma, lam, weight=gamma)


@mistake("gae",
         nudge="Your sum has one factor. How many symbols are in it?",
         pointer="Gamma is missing in the recursion.",
         answer="gamma * lam.")
def gamma_missing_in_the_sum(r, v, n, d, c, gamma, lam):
    return recursion(r, v, n, d, c, gamma, lam, weight=lam)


@mistake("gae",
         nudge="How far in the future is s'?",
         pointer="V(s') is not discounted in the TD error.",
         answer="gamma * next_values.")
def gamma_missing_in_delta(r, v, n, d, c, gamma, lam):
    return recursion(r, v, n, d, c, gamma, lam, delta=r + n * ~d - v)


@mistake("gae",
         nudge="Gamma and lambda: which one discounts the value of the next state?",
         pointer="Gamma and lambda are swapped.",
         answer="The TD error has gamma alone; the recursion has both.")
def gamma_and_lambda_swapped(r, v, n, d, c, gamma, lam):
    return recursion(r, v, n, d, c, lam, gamma)


@mistake("gae",
         nudge="Look at the step just before an episode ends: is its sum complete?",
         pointer="The sum is cut one step too early: step t uses the flags of step t+1.",
         answer="The flags of row t decide whether A(t+1) flows into A(t).")
def cut_one_step_early(r, v, n, d, c, gamma, lam):
    cut = torch.maximum(d.float(), c.float())
    return recursion(r, v, n, d, c, gamma, lam, cut=torch.cat([cut[1:], cut[-1:]]))


@mistake("gae",
         nudge="Look at the ending step itself: what flows into it?",
         pointer="The sum is cut one step too late: step t uses the flags of step t-1.",
         answer="The flags of row t decide whether A(t+1) flows into A(t).")
def cut_one_step_late(r, v, n, d, c, gamma, lam):
    cut = torch.maximum(d.float(), c.float())
    return recursion(r, v, n, d, c, gamma, lam, cut=torch.cat([torch.zeros_like(cut[:1]), cut[:-1]]))


@mistake("gae",
         nudge="What is the advantage of the step after the last row?",
         pointer="The recursion starts with the value of the next state; it starts with 0.",
         answer="running = zeros: next_values of the last row is already in its TD error.")
def starts_with_a_value(r, v, n, d, c, gamma, lam):
    return recursion(r, v, n, d, c, gamma, lam, later=n[-1])


@mistake("gae",
         nudge="In which direction does the news travel?",
         pointer="The loop runs forwards: advantages collect the past, not the future.",
         answer="for t in reversed(range(T)).")
def forwards(r, v, n, d, c, gamma, lam):
    deltas, advantages, running = r + gamma * n * ~d - v, torch.zeros_like(r), torch.zeros_like(r[0])
    for t in range(len(r)):
        running = deltas[t] + gamma * lam * ~(d | c)[t] * running
        advantages[t] = running
    return advantages, advantages + v


@mistake("gae",
         nudge="What should the critic have said?",
         pointer="The returns are the discounted sum of next advantages only; they are advantages + values.",
         answer="advantages + values.")
def returns_are_advantages(r, v, n, d, c, gamma, lam):
    return recursion(r, v, n, d, c, gamma, lam, returns=lambda advantages: advantages)


@mistake("gae",
         nudge="Which value does the advantage of s_t correct?",
         pointer="The returns add V(s_{t+1}); an advantage corrects V(s_t).",
         answer="advantages + values, not advantages + next_values.")
def returns_with_next_values(r, v, n, d, c, gamma, lam):
    return recursion(r, v, n, d, c, gamma, lam, returns=lambda advantages: advantages + n)


@mistake("gae",
         nudge="What is left of lambda in your targets?",
         pointer="The returns are one-step targets r + gamma V(s'); they are advantages + values.",
         answer="advantages + values.")
def one_step_returns(r, v, n, d, c, gamma, lam):
    return recursion(r, v, n, d, c, gamma, lam, returns=lambda advantages: r + gamma * n * ~d)


@mistake("gae",
         nudge="Whose duty is it to normalise the advantages?",
         pointer="The advantages are normalised here; the update does that, for each minibatch.",
         answer="Return them as they are.")
def normalised_here(r, v, n, d, c, gamma, lam):
    advantages, returns = recursion(r, v, n, d, c, gamma, lam)
    return (advantages - advantages.mean()) / (advantages.std() + 1e-8), returns
