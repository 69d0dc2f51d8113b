"""Known mistakes of 03_ppo_details in the advantages. T steps, N envs."""

from dataclasses import dataclass

import torch

from grading.mistakes import Book

MISTAKES = Book()


def gae(next_value, next_done, rewards, values, dones, device, gamma, lam, *, delta=None, weight=None, mask=None,
        last=None, start=None):
    """GAE with replaced parts. x below: r, v, next_v, ended (0 or 1), dones, next_done; all [T, N].

    delta    (x, gamma, lam) -> TD errors
    weight   (gamma, lam) -> factor of the next advantage
    mask     x -> what multiplies the next advantage
    last     (next_value, next_done) -> those that are used instead
    start    next_value [N] -> the advantage after the last step
    """
    if last:
        next_value, next_done = last(next_value, next_done)
    x = Parts(rewards, values, torch.cat([values[1:], next_value.reshape(1, -1)]),
              torch.cat([dones[1:], next_done.reshape(1, -1)]), dones)
    deltas = delta(x, gamma, lam) if delta else td_errors(x, gamma)
    keep = mask(x) if mask else 1 - x.ended
    factor = weight(gamma, lam) if weight else gamma * lam
    advantages = torch.zeros_like(deltas)
    carried = start(next_value.flatten()) if start else torch.zeros(deltas.shape[1])
    for t in reversed(range(len(deltas))):
        carried = deltas[t] + factor * keep[t] * carried
        advantages[t] = carried
    return advantages


@dataclass
class Parts:
    """The columns of a rollout, all [T, N]; ended: 1 where step t ended an episode."""

    r: torch.Tensor
    v: torch.Tensor
    next_v: torch.Tensor
    ended: torch.Tensor
    dones: torch.Tensor


def td_errors(x, gamma):
    return x.r + gamma * x.next_v * (1 - x.ended) - x.v


def mistaken(name, nudge, pointer, answer, after=None, **parts):
    """Registers a version with replaced parts; `after` (advantages, arguments) -> what is returned."""
    def wrong(*arguments):
        advantages = gae(*arguments, **parts)
        return after(advantages, arguments) if after else advantages
    wrong.__name__ = name
    MISTAKES.add("compute_advantages", nudge=nudge, pointer=pointer, answer=answer)(wrong)


DELTA = "delta[t] = rewards[t] + gamma * V[t+1] * (1 - done[t+1]) - values[t]"
SUM = "A[t] = delta[t] + gamma * gae_lambda * (1 - done[t+1]) * A[t+1]"

mistaken("next_value_dropped", "What does the critic expect after the last step of the rollout?",
         "next_value is not used: the last step is treated as the end of an episode.",
         "At t = T-1 the next value is next_value: torch.cat([values[1:], next_value]).",
         last=lambda value, done: (value * 0, done))
mistaken("next_done_ignored", "How do you know whether the last step of the rollout ended an episode?",
         "next_done is not used: the last step bootstraps even where it ended an episode.",
         "At t = T-1 the flag is next_done: torch.cat([dones[1:], next_done[None]]).",
         last=lambda value, done: (value, done * 0))
mistaken("dones_one_step_late", "dones[t] = 1: did step t end an episode, or begin one?",
         "You use dones[t] where the flag of step t+1 belongs: dones[t] says that step t is the FIRST of an episode, so it "
         "was step t-1 that ended one.",
         "Step t ended an episode if dones[t+1] is 1 (next_done for the last step).",
         delta=lambda x, g, lam: x.r + g * x.next_v * (1 - x.dones) - x.v, mask=lambda x: 1 - x.dones)
mistaken("delta_uses_dones_t",
         "The bootstrap in delta[t] looks at V[t+1]. Which flag says whether t+1 is the same episode?",
         "In the TD error you use dones[t]; it takes the flag of step t+1.", DELTA,
         delta=lambda x, g, lam: x.r + g * x.next_v * (1 - x.dones) - x.v)
mistaken("sum_uses_dones_t", "A[t+1] flows into A[t]. Which flag says whether they belong to the same episode?",
         "In the recursion you use dones[t]; it takes the flag of step t+1.", SUM, mask=lambda x: 1 - x.dones)
mistaken("bootstraps_after_the_end", "What is an episode worth after it has ended?",
         "You bootstrap over an episode's end: V[t+1] is the first value of ANOTHER episode there.", DELTA,
         delta=lambda x, g, lam: x.r + g * x.next_v - x.v)
mistaken("sum_not_cut", "Which surprises belong to the episode that step t is part of?",
         "The sum runs across episode ends: the lambda-term is not masked, and the next episode's advantage leaks in.", SUM,
         mask=lambda x: torch.ones_like(x.ended))
mistaken("ends_ignored", "Where does your code use dones?",
         "Episode ends are ignored altogether: both the bootstrap and the sum run into the next episode.",
         "(1 - done[t+1]) belongs in two places: before V[t+1] in delta, and before A[t+1] in the sum.",
         delta=lambda x, g, lam: x.r + g * x.next_v - x.v, mask=lambda x: torch.ones_like(x.ended))
mistaken("mask_covers_the_baseline", "Where an episode ends, which parts of r + gamma V' - V are still there?",
         "Your mask removes the baseline V[t] too; at an end only gamma * V[t+1] goes.", DELTA,
         delta=lambda x, g, lam: x.r + (g * x.next_v - x.v) * (1 - x.ended))
mistaken("mask_covers_the_reward", "Where an episode ends, was the last reward not received?",
         "Your mask removes the reward of the last step of an episode too.", DELTA,
         delta=lambda x, g, lam: (x.r + g * x.next_v) * (1 - x.ended) - x.v)
mistaken("mask_inverted", "Is the flag 0 or 1 where an episode goes on?",
         "Your mask is inverted: you bootstrap only where an episode has ended.", "The factor is 1 - done, not done.",
         delta=lambda x, g, lam: x.r + g * x.next_v * x.ended - x.v, mask=lambda x: x.ended)
mistaken("one_end_cuts_all", "Environment 0 has ended. What does environment 1 care?",
         "An end in one environment cuts the sum in all of them.",
         "Keep the mask a tensor over environments; no any(), no if.",
         mask=lambda x: (1 - x.ended).min(dim=1, keepdim=True).values.expand_as(x.ended))
mistaken("lambda_missing", "Your sum has one decay factor. How many should it have?",
         "gae_lambda is missing: A[t+1] is weighted by gamma alone, as in a discounted sum of all rewards.", SUM,
         weight=lambda g, lam: g)
mistaken("gamma_missing_in_the_sum", "Your sum has one decay factor. How many should it have?",
         "gamma is missing in the sum: A[t+1] is weighted by gae_lambda alone.", SUM, weight=lambda g, lam: lam)
mistaken("gamma_missing_in_delta", "How far in the future is V[t+1], seen from step t?",
         "gamma is missing in the TD error: V[t+1] is not discounted.", DELTA,
         delta=lambda x, g, lam: x.r + x.next_v * (1 - x.ended) - x.v)
mistaken("lambda_in_delta", "Which of gamma and lambda belongs into a one-step TD error?",
         "gae_lambda stands in the TD error; it belongs only into the sum.", DELTA,
         delta=lambda x, g, lam: x.r + g * lam * x.next_v * (1 - x.ended) - x.v)
mistaken("only_the_td_error", "What would you get with lambda = 0? Compare.",
         "You return the one-step TD errors; the sum over later steps is missing.", SUM, weight=lambda g, lam: 0.0)
mistaken("sum_not_discounted", "How much does a surprise ten steps later count?",
         "Later TD errors are summed without any discount.", SUM, weight=lambda g, lam: 1.0)
mistaken("lambda_squared", "With which power does gae_lambda enter per step?",
         "A[t+1] is weighted by gamma * gae_lambda**2.", SUM, weight=lambda g, lam: g * lam * lam)
mistaken("gamma_squared", "With which power does gamma enter per step?",
         "A[t+1] is weighted by gamma**2 * gae_lambda.", SUM, weight=lambda g, lam: g * g * lam)
mistaken("gamma_and_lambda_swapped", "Which of the two discounts V[t+1]?", "gamma and gae_lambda are swapped.",
         "gamma discounts V[t+1]; gamma * gae_lambda weights A[t+1].",
         delta=lambda x, g, lam: x.r + lam * x.next_v * (1 - x.ended) - x.v)
mistaken("value_of_the_same_step", "Which state follows step t?",
         "The TD error bootstraps from V[t] instead of V[t+1].", DELTA,
         delta=lambda x, g, lam: x.r + g * x.v * (1 - x.ended) - x.v)
mistaken("next_value_everywhere", "Which value follows step t in the middle of the rollout?",
         "next_value is used at every step; it follows only the last one.", DELTA,
         delta=lambda x, g, lam: x.r + g * x.next_v[-1] * (1 - x.ended) - x.v)
mistaken("rewards_one_step_late", "Which reward did the action of step t bring?",
         "The rewards are shifted: step t uses rewards[t+1]; rewards[t] is the one for leaving observation t.", DELTA,
         delta=lambda x, g, lam: torch.cat([x.r[1:], x.r[-1:] * 0]) + g * x.next_v * (1 - x.ended) - x.v)
mistaken("baseline_missing", "Better than what?", "The baseline V[t] is not subtracted.", DELTA,
         delta=lambda x, g, lam: x.r + g * x.next_v * (1 - x.ended))
mistaken("sign_flipped", "Is a good action one that brings more than expected, or less?",
         "The sign is wrong: your advantages are V[t] - (r + gamma V[t+1]).", DELTA,
         delta=lambda x, g, lam: -td_errors(x, g))
mistaken("sum_starts_with_next_value", "Which advantage lies beyond the rollout? What do we know of it?",
         "The sum starts with next_value as the advantage after the last step; it starts with 0.",
         "A[T-1] = delta[T-1]: nothing is added to the last TD error.", start=lambda value: value)
mistaken("returns_for_advantages", "The critic's target and the advantage differ by one term. Which did you return?",
         "You return advantages + values, which is the critic's target.", "return advantages",
         after=lambda a, given: a + given[3])
mistaken("advantages_normalised", "At which moment are advantages normalised in this notebook?",
         "You normalise the advantages; that happens later, for each minibatch.", "Return the plain sums.",
         after=lambda a, given: (a - a.mean()) / (a.std() + 1e-8) if a.numel() > 1 else a * 0)
mistaken("exponent_one_too_high", "With which power does delta[t] itself enter A[t]?",
         "Every term has one factor gamma * gae_lambda too many.", "A[t] starts with delta[t] itself, unweighted.",
         after=lambda a, given: a * given[6] * given[7])
mistaken("last_step_left_out", "The last step has an advantage too.",
         "The last row is 0: your loop starts one step too early.", "A[T-1] = delta[T-1], with next_value in it.",
         after=lambda a, given: torch.cat([a[:-1], a[-1:] * 0]))
mistaken("order_reversed", "In which order did you collect the advantages, and in which do you return them?",
         "The result is reversed in time.",
         "Turn the list round at the end: advantages[::-1], or write into advantages[t].",
         after=lambda a, given: a.flip(0))


def _wrong(nudge, pointer, answer):
    return MISTAKES.add("compute_advantages", nudge=nudge, pointer=pointer, answer=answer)


@_wrong("Does A[t] depend on what came before step t, or on what came after?",
        "Your recursion runs forwards in time; an advantage sums what comes AFTER the action.",
        "for t in reversed(range(T)).")
def recursion_runs_forwards(next_value, next_done, rewards, values, dones, device, gamma, lam):
    x = Parts(rewards, values, torch.cat([values[1:], next_value]), torch.cat([dones[1:], next_done[None]]), dones)
    deltas = td_errors(x, gamma)
    advantages, carried = torch.zeros_like(deltas), torch.zeros(deltas.shape[1])
    for t in range(len(deltas)):
        carried = deltas[t] + gamma * lam * (1 - x.ended[t]) * carried
        advantages[t] = carried
    return advantages


@_wrong("Along which dimension does time run?",
        "The recursion runs over the environments instead of over time.",
        "values[t] is one row of all environments; loop over the first dimension.")
def recursion_over_environments(next_value, next_done, rewards, values, dones, device, gamma, lam):
    x = Parts(rewards, values, torch.cat([values[1:], next_value]), torch.cat([dones[1:], next_done[None]]), dones)
    deltas = td_errors(x, gamma)
    advantages, carried = torch.zeros_like(deltas), torch.zeros(len(deltas))
    for n in reversed(range(deltas.shape[1])):
        carried = deltas[:, n] + gamma * lam * (1 - x.ended[:, n]) * carried
        advantages[:, n] = carried
    return advantages


@_wrong("Where an episode ends, does the whole advantage vanish?",
        "Advantages of the steps that end an episode are set to 0.",
        "The mask goes before V[t+1] and A[t+1] only: the ending step has reward and baseline.")
def ending_steps_erased(next_value, next_done, rewards, values, dones, device, gamma, lam):
    ended = torch.cat([dones[1:], next_done[None]])
    return gae(next_value, next_done, rewards, values, dones, device, gamma, lam) * (1 - ended)


@_wrong("Are the rewards that came in still what they were?",
        "The inputs are changed in place: rewards (or values) are overwritten by your results.",
        "Write into a new tensor: advantages = torch.zeros_like(rewards).")
def writes_into_rewards(next_value, next_done, rewards, values, dones, device, gamma, lam):
    rewards.copy_(gae(next_value, next_done, rewards, values, dones, device, gamma, lam))
    return rewards


# compute_advantages_without_loop --------------------------------------------------------------------------------------

def without_loop(name, nudge, pointer, answer, decay=None, same=None, final=None):
    """Registers a wrong version without a loop.

    decay   (gamma, lam) -> weight per step
    same    same-episode mask [t, k, N] -> another
    final   (next_value, next_done) -> those that are used
    """
    def wrong(next_value, next_done, rewards, values, dones, device, gamma, lam):
        if final:
            next_value, next_done = final(next_value, next_done)
        T = len(rewards)
        x = Parts(rewards, values, torch.cat([values[1:], next_value]), torch.cat([dones[1:], next_done[None]]), dones)
        ahead = torch.arange(T)[None, :] - torch.arange(T)[:, None]
        weights = torch.where(ahead >= 0, (decay(gamma, lam) if decay else gamma * lam) ** ahead.clamp(min=0).float(),
        0.0)
        episode = dones.cumsum(0)
        mask = (episode[:, None] == episode[None]).float()
        return torch.einsum("tk,tkn,kn->tn", weights, same(mask) if same else mask, td_errors(x, gamma))
    wrong.__name__ = name
    MISTAKES.add("compute_advantages_without_loop", nudge=nudge, pointer=pointer, answer=answer)(wrong)


without_loop("leaks_over_ends", "Which TD errors belong to the episode of step t?",
             "The weights ignore where episodes end.",
             "Multiply by 1 where steps t and k are in the same episode: compare "
             "cumulative sums of dones.", same=torch.ones_like)
without_loop("lambda_lost", "Which two numbers make the weight of a step?", "gae_lambda is missing in the weights.",
             "(gamma * gae_lambda) ** (k - t)", decay=lambda gamma, lam: gamma)
without_loop("boundary_lost", "What comes after the last step?", "next_value is not used.",
             "torch.cat([values[1:], next_value])", final=lambda value, done: (value * 0, done))


@MISTAKES.add("compute_advantages_without_loop", nudge="How does the time of your version grow with the rollout?",
              pointer="There is still a loop over the steps.",
              answer="Weights (gamma * gae_lambda)^(k - t) as a [t, k] matrix, times the mask of equal episodes, times delta.")
def still_a_loop(*arguments):
    return gae(*arguments)
