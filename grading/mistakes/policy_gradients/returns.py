"""Known mistakes of 01_policy_gradients: sums over time."""

import torch

from grading.mistakes import Book

MISTAKES = Book()
mistake = MISTAKES.add


# discounted_returns ---------------------------------------------------------------------------------------------------

def _column(powers):
    return powers.to(torch.float32).unsqueeze(1)


@mistake("discounted_returns",
         nudge="How much does a reward count that comes at once?",
         pointer="Your first power of gamma is 1, not 0: the reward of step 0 is discounted already.",
         answer="The discounts are gamma ** 0, gamma ** 1, ..., so gamma ** torch.arange(T).")
def return_discounts_the_first_reward(rewards, gamma):
    return (_column(gamma ** torch.arange(1, len(rewards) + 1)) * rewards).sum(dim=0)


@mistake("discounted_returns",
         nudge="Does gamma do anything in your code?",
         pointer="The rewards are summed without any discount.",
         answer="Multiply row t of the rewards with gamma ** t before you sum.")
def return_without_discount(rewards, gamma):
    return rewards.sum(dim=0)


@mistake("discounted_returns",
         nudge="Which reward is the far one: the first or the last?",
         pointer="The powers of gamma run backwards: the last reward counts fully and the first the least.",
         answer="Row t is worth gamma ** t, not gamma ** (T - 1 - t).")
def return_discounts_backwards(rewards, gamma):
    return (_column(gamma ** torch.arange(len(rewards)).flip(0)) * rewards).sum(dim=0)


@mistake("discounted_returns",
         nudge="What does one column of the rewards hold, and what one row?",
         pointer="You sum over the trajectories; there must be one number per trajectory, summed over time.",
         answer="Time is dimension 0: sum(dim=0).")
def return_summed_over_trajectories(rewards, gamma):
    return (_column(gamma ** torch.arange(len(rewards))) * rewards).sum(dim=1)


@mistake("discounted_returns",
         nudge="A return is a sum. Do you divide by anything?",
         pointer="You take the mean over the steps where the sum is asked for.",
         answer="Use .sum(dim=0) in place of .mean(dim=0).")
def return_is_a_mean(rewards, gamma):
    return (_column(gamma ** torch.arange(len(rewards))) * rewards).mean(dim=0)


@mistake("discounted_returns",
         nudge="By how much does the worth of a reward fall from one step to the next?",
         pointer="Every reward but the first has the same factor gamma; it should shrink with each step.",
         answer="The factor of step t is gamma to the power t.")
def return_discounts_once(rewards, gamma):
    return rewards[0] + gamma * rewards[1:].sum(dim=0)


@mistake("discounted_returns",
         nudge="How many trajectories are there, and how many numbers do you return?",
         pointer="You sum everything up; one number per trajectory is asked for.",
         answer="Sum over dimension 0 only: .sum(dim=0) gives [N].")
def return_is_one_number(rewards, gamma):
    return (_column(gamma ** torch.arange(len(rewards))) * rewards).sum()


@mistake("discounted_returns",
         nudge="Which dtype have the rewards, and which has your result?",
         pointer="The result is float64: the discounts were made in double precision.",
         answer="Make the discounts with dtype=rewards.dtype, or end with .float().")
def return_in_float64(rewards, gamma):
    return (_column(gamma ** torch.arange(len(rewards))) * rewards).sum(dim=0).double()


# reward_to_go ---------------------------------------------------------------------------------------------------------

def _to_go(rewards, gamma, exponent=lambda t, k: k - t, counts=lambda t, k: k >= t):
    """to_go[t] = sum over the k that count of gamma^exponent(t, k) * rewards[k]."""
    rows = [sum((gamma ** exponent(t, k) * rewards[k] for k in range(len(rewards)) if counts(t, k)), rewards[0] * 0)
            for t in range(len(rewards))]
    return torch.stack(rows)


@mistake("reward_to_go",
         nudge="What is the worth, at step 5, of a reward that comes at step 5?",
         pointer="You discount by gamma^k, counted from the beginning; it must be counted from step t.",
         answer="The exponent is k - t. The recursion G_t = r_t + gamma * G_{t+1} does it by itself.")
def to_go_discounts_from_the_start(rewards, gamma):
    return _to_go(rewards, gamma, exponent=lambda t, k: k)


@mistake("reward_to_go",
         nudge="Is the reward of step t a consequence of the action of step t?",
         pointer="The reward of the step itself is left out; the sum begins at k = t.",
         answer="Add rewards[t] before you store: running = rewards[t] + gamma * running.")
def to_go_without_its_own_reward(rewards, gamma):
    return _to_go(rewards, gamma, exponent=lambda t, k: k - t - 1, counts=lambda t, k: k > t)


@mistake("reward_to_go",
         nudge="Which rewards can an action still change?",
         pointer="You sum the rewards up to step t, the past; reward-to-go is the future.",
         answer="Walk from the last step to the first: for t in reversed(range(T)).")
def to_go_looks_back(rewards, gamma):
    return _to_go(rewards, gamma, exponent=lambda t, k: t - k, counts=lambda t, k: k <= t)


@mistake("reward_to_go",
         nudge="Does gamma do anything in your code?",
         pointer="The rewards are summed up without a discount.",
         answer="running = rewards[t] + gamma * running.")
def to_go_without_discount(rewards, gamma):
    return _to_go(rewards, 1.0)


@mistake("reward_to_go",
         nudge="Should the first and the last step of a trajectory get the same number?",
         pointer="Every step gets the return of the whole trajectory; earlier rewards must be left out.",
         answer="Step t sums only over k >= t.")
def to_go_is_the_total_return(rewards, gamma):
    return _to_go(rewards, gamma)[:1].expand(rewards.shape).clone()


@mistake("reward_to_go",
         nudge="Does a reward that follows at once lose anything?",
         pointer="One factor gamma too many: also the reward of the step itself is discounted.",
         answer="gamma multiplies the later reward-to-go only: rewards[t] + gamma * running.")
def to_go_discounts_its_own_reward(rewards, gamma):
    return _to_go(rewards, gamma, exponent=lambda t, k: k - t + 1)


@mistake("reward_to_go",
         nudge="Which way does time run in the tensor of the rewards?",
         pointer="You sum along the trajectories: rows and columns are exchanged.",
         answer="Time is dimension 0; loop over len(rewards) and use rewards[t].")
def to_go_over_the_wrong_dimension(rewards, gamma):
    return _to_go(rewards.T, gamma).T


@mistake("reward_to_go",
         nudge="What is added to the reward of the last step but one?",
         pointer="Only the next reward is added; the sum must go on to the end.",
         answer="Add the reward-to-go of the next step, not its reward: keep it in a running tensor.")
def to_go_looks_one_step_ahead(rewards, gamma):
    return _to_go(rewards, gamma, counts=lambda t, k: t <= k <= t + 1)


@mistake("reward_to_go",
         nudge="Is the tensor that you were given still the same afterwards?",
         pointer="The values are right, but you wrote them into the rewards that you were given.",
         answer="Write into a new tensor: to_go = torch.zeros_like(rewards).")
def to_go_overwrites_the_rewards(rewards, gamma):
    for t in reversed(range(len(rewards) - 1)):
        rewards[t] += gamma * rewards[t + 1]
    return rewards


# td_errors ------------------------------------------------------------------------------------------------------------

def _alive(terminated):
    return (~terminated).float()


@mistake("td_errors",
         nudge="What is the value of a state after which nothing comes?",
         pointer="You bootstrap at a terminal state: gamma * V(s') is added where terminated is True.",
         answer="Multiply gamma * next_values by (~terminated).float().")
def td_terminal_state_bootstrapped(rewards, values, next_values, terminated, gamma):
    return rewards + gamma * next_values - values


@mistake("td_errors",
         nudge="A step terminates the episode. Was there a reward for it, and was something expected?",
         pointer="At a terminal step everything is set to 0; only V(s') must vanish.",
         answer="The mask multiplies gamma * next_values alone.")
def td_masks_everything(rewards, values, next_values, terminated, gamma):
    return (rewards + gamma * next_values - values) * _alive(terminated)


@mistake("td_errors",
         nudge="At the end of an episode: is the expectation V(s) void as well?",
         pointer="The mask also removes V(s) at a terminal step; only V(s') must vanish.",
         answer="rewards + gamma * next_values * alive - values, without brackets around the last two.")
def td_masks_the_own_value(rewards, values, next_values, terminated, gamma):
    return rewards + (gamma * next_values - values) * _alive(terminated)


@mistake("td_errors",
         nudge="Does gamma do anything in your code?",
         pointer="The next value is not discounted.",
         answer="gamma * next_values.")
def td_without_discount(rewards, values, next_values, terminated, gamma):
    return rewards + next_values * _alive(terminated) - values


@mistake("td_errors",
         nudge="A surprise is the difference between what came and what was expected.",
         pointer="V(s) is not subtracted: this is the target, not the error.",
         answer="Subtract values at the end.")
def td_is_the_target(rewards, values, next_values, terminated, gamma):
    return rewards + gamma * next_values * _alive(terminated)


@mistake("td_errors",
         nudge="A reward higher than expected: is the surprise positive?",
         pointer="The sign is turned: expected minus what came.",
         answer="rewards + gamma * next_values * alive - values.")
def td_with_the_wrong_sign(rewards, values, next_values, terminated, gamma):
    return values - rewards - gamma * next_values * _alive(terminated)


@mistake("td_errors",
         nudge="In which steps is the mask 1: in those that terminate, or in the others?",
         pointer="The mask is the wrong way round: you bootstrap only where the episode ended.",
         answer="Use ~terminated, not terminated.")
def td_mask_inverted(rewards, values, next_values, terminated, gamma):
    return rewards + gamma * next_values * terminated.float() - values


@mistake("td_errors",
         nudge="Which state did step t lead to? Is it always the one of row t + 1?",
         pointer="You use row t + 1 of values for V(s'); after the last row, and after an end, that is another state.",
         answer="Use next_values, which holds the state that the step really led to.")
def td_uses_the_next_row(rewards, values, next_values, terminated, gamma):
    shifted = torch.cat([values[1:], torch.zeros_like(values[:1])])
    return rewards + gamma * shifted * _alive(terminated) - values


@mistake("td_errors",
         nudge="What exactly is discounted: the reward now, or what comes after it?",
         pointer="The reward is discounted as well; only V(s') is one step away.",
         answer="rewards + gamma * (...), not gamma * (rewards + ...).")
def td_discounts_the_reward(rewards, values, next_values, terminated, gamma):
    return gamma * (rewards + next_values * _alive(terminated)) - values


@mistake("td_errors",
         nudge="Which two values are compared, and in which order do they come in time?",
         pointer="V(s) and V(s') are exchanged.",
         answer="gamma multiplies next_values; values are subtracted.")
def td_exchanges_the_values(rewards, values, next_values, terminated, gamma):
    return rewards + gamma * values * _alive(terminated) - next_values
