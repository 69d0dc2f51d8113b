"""Known mistakes of 03_ppo_details in the three losses. M rows of a minibatch."""

import torch
from torch.nn import functional as F

from grading.mistakes import Book

MISTAKES = Book()


def policy(name, nudge, pointer, answer, ratio=None, normalise=None, objective=None, mean=None):
    """Registers a wrong calc_policy_loss with replaced parts.

    ratio       (new, old) log-probabilities -> ratio
    normalise   advantages -> advantages
    objective   (ratio, advantages, clip_coef) -> what is maximised, one number per row
    mean        objective -> the loss
    """
    def wrong(probs, mb_action, mb_advantages, mb_logprobs, clip_coef):
        r = (ratio or right_ratio)(probs.log_prob(mb_action), mb_logprobs)
        a = (normalise or normalised)(mb_advantages)
        rows = (objective or clipped)(r, a, clip_coef)
        return mean(rows) if mean else -rows.mean()
    wrong.__name__ = name
    MISTAKES.add("calc_policy_loss", nudge=nudge, pointer=pointer, answer=answer)(wrong)


def right_ratio(new, old):
    return torch.exp(new - old)


def normalised(a):
    return (a - a.mean()) / (a.std() + 1e-8)


def clipped(ratio, a, eps):
    return torch.min(ratio * a, ratio.clamp(1 - eps, 1 + eps) * a)


RATIO = "ratio = torch.exp(probs.log_prob(mb_action) - mb_logprobs)"
NORMAL = "(mb_advantages - mb_advantages.mean()) / (mb_advantages.std() + 1e-8)"
CLIP = "torch.min(ratio * A, ratio.clamp(1 - clip_coef, 1 + clip_coef) * A)"

policy("sign_flipped", "The optimizer minimises. What should the policy do with the objective?",
       "The sign is wrong: minimising your loss makes good actions less likely.", "loss = -torch.min(...).mean()",
       mean=lambda rows: rows.mean())
policy("sum_for_mean", "Would your loss double with twice as many rows?", "You sum over the rows; it is their mean.",
       ".mean() instead of .sum()", mean=lambda rows: -rows.sum())
policy("not_averaged", "How many numbers does an optimizer minimise?", "The loss still has one number per row.",
       "Take the mean at the end.", mean=lambda rows: -rows)
policy("detached", "Can loss.backward() reach the actor from what you return?",
       "The loss has no gradient: the ratio or the loss is detached, or made under no_grad().",
       "Take torch.no_grad(), detach() and item() out of calc_policy_loss.", mean=lambda rows: -rows.mean().detach())
policy("absolute_value", "May a loss be negative?", "You take the absolute value; a policy loss may have any sign.",
       "loss = -torch.min(...).mean()", mean=lambda rows: rows.mean().abs())
policy("never_clipped", "What limits how far one update can move the policy?", "The ratio is never clipped.", CLIP,
       objective=lambda r, a, eps: r * a)
policy("max_for_min", "Is the objective the optimist's or the pessimist's choice of the two terms?",
       "You take the larger of the two terms; the objective takes the smaller. (With minus signs inside, the loss takes the "
       "larger.)", CLIP, objective=lambda r, a, eps: torch.max(r * a, r.clamp(1 - eps, 1 + eps) * a))
policy("only_the_clipped_term", "When the ratio has left the range on the harmful side, is there still a gradient?",
       "The minimum with the unclipped term is missing.", CLIP, objective=lambda r, a, eps: r.clamp(1 - eps,
       1 + eps) * a)
policy("surrogate_clamped", "What exactly lies between 1 - clip_coef and 1 + clip_coef?",
       "You clamp ratio * advantage; only the ratio is clamped.", CLIP,
       objective=lambda r, a, eps: torch.min(r * a, (r * a).clamp(1 - eps, 1 + eps)))
policy("clipped_above_only", "Try a ratio of 0.5 with a negative advantage.", "The ratio is clipped from above only.",
       CLIP,
       objective=lambda r, a, eps: torch.min(r * a, r.clamp(max=1 + eps) * a))
policy("clipped_below_only", "Try a ratio of 1.5 with a positive advantage.", "The ratio is clipped from below only.",
       CLIP,
       objective=lambda r, a, eps: torch.min(r * a, r.clamp(min=1 - eps) * a))
policy("clip_coef_ignored", "Where does your clip range come from?",
       "The clip range is the constant 0.2 instead of clip_coef.",
       CLIP, objective=lambda r, a, eps: clipped(r, a, 0.2))
policy("range_around_zero", "Which ratio means that nothing has changed?",
       "The clip range lies around 0 instead of 1.", CLIP,
       objective=lambda r, a, eps: torch.min(r * a, r.clamp(-eps, eps) * a))
policy("range_twice_as_wide", "Which two numbers bound the ratio?",
       "The clip range is twice as wide as it should be.", CLIP,
       objective=lambda r, a, eps: clipped(r, a, 2 * eps))
policy("range_of_a_quotient", "Is the lower bound 1 - clip_coef, or 1 / (1 + clip_coef)?",
       "The lower bound is 1 / (1 + clip_coef); it is 1 - clip_coef.", CLIP,
       objective=lambda r, a, eps: torch.min(r * a, r.clamp(1 / (1 + eps), 1 + eps) * a))
policy("mean_before_the_minimum", "Is the minimum taken per row, or once?",
       "You average both terms first and take the smaller mean; the minimum is taken row by row.",
       "torch.min(...).mean(), in this order.",
       objective=lambda r, a, eps: torch.min((r * a).mean(), (r.clamp(1 - eps, 1 + eps) * a).mean()))
policy("not_normalised", "What happens to the size of a step if all rewards are ten times larger?",
       "The advantages are not normalised.", NORMAL, normalise=lambda a: a)
policy("mean_not_subtracted", "After normalising, what is the mean of the advantages?",
       "The mean is not subtracted from the advantages.", NORMAL, normalise=lambda a: a / (a.std() + 1e-8))
policy("not_divided_by_the_std", "After normalising, what is the standard deviation of the advantages?",
       "The advantages are centred, but not divided by their standard deviation.", NORMAL,
       normalise=lambda a: a - a.mean())
policy("divided_by_the_variance", "In which units is a variance?",
       "You divide by the variance; it is the standard deviation.",
       NORMAL, normalise=lambda a: (a - a.mean()) / (a.var() + 1e-8))
policy("divided_by_the_largest", "After normalising, what is the standard deviation of the advantages?",
       "You divide by the largest advantage; it is the standard deviation.", NORMAL,
       normalise=lambda a: (a - a.mean()) / (a.abs().max() + 1e-8))
policy("divided_by_the_length", "After normalising, what is the standard deviation of the advantages?",
       "You divide by the length of the vector (its norm); it is the standard deviation.", NORMAL,
       normalise=lambda a: (a - a.mean()) / ((a - a.mean()).norm() + 1e-8))
policy("min_max_scaled", "After normalising, what is the mean of the advantages?",
       "You scale the advantages into [0, 1]: none is negative any more.", NORMAL,
       normalise=lambda a: (a - a.min()) / (a.max() - a.min() + 1e-8))
policy("normalised_without_eps", "What if all advantages of a minibatch are equal?",
       "Nothing keeps the division from 0 / 0 where all advantages are equal.", NORMAL,
       normalise=lambda a: (a - a.mean()) / a.std())
policy("precedence_of_the_division", "Where do the brackets of your formula close?",
       "Only the mean is divided: A - mean / std.", NORMAL, normalise=lambda a: a - a.mean() / (a.std() + 1e-8))
policy("ratio_without_exp", "A difference of log-probabilities is the logarithm of what?",
       "The exponential is missing: you use the log of the ratio.", RATIO, ratio=lambda new, old: new - old)
policy("ratio_upside_down", "If an action has become more likely, is the ratio above or below 1?",
       "The ratio is upside down: old over new.", RATIO, ratio=lambda new, old: torch.exp(old - new))
policy("ratio_of_logs", "p / q, written with log p and log q?",
       "You divide log-probabilities; the ratio divides probabilities.",
       RATIO, ratio=lambda new, old: new / old)
policy("ratio_always_one", "Does your ratio ever leave 1?",
       "mb_logprobs is not used: the old log-probabilities are computed anew, so the ratio is always 1.", RATIO,
       ratio=lambda new, old: torch.exp(new - new.detach()))
policy("probability_for_ratio", "Which policy collected these actions?",
       "The old policy is missing: this is the new probability.",
       RATIO, ratio=lambda new, old: torch.exp(new))
policy("plain_policy_gradient", "Which policy collected these actions?",
       "This is log-probability times advantage, the plain policy gradient: ratio and clip are missing.", RATIO,
       ratio=lambda new, old: new, objective=lambda new, a, eps: new * a)
policy("log_ratio_clipped", "exp(clip_coef) is not 1 + clip_coef.",
       "You clip the log-ratio and exponentiate afterwards.", CLIP,
       ratio=lambda new, old: new - old,
       objective=lambda log_ratio, a, eps: torch.min(log_ratio.exp() * a, log_ratio.clamp(-eps, eps).exp() * a))
policy("gradient_through_the_clip_only", "Which of the two terms has a gradient inside the range?",
       "The unclipped term is detached: part of the gradient is lost.", "Build both terms from the same ratio.",
       objective=lambda r, a, eps: torch.min((r * a).detach(), r.clamp(1 - eps, 1 + eps) * a))


@MISTAKES.add("calc_policy_loss", nudge="Which terms did the definition ask for?",
              pointer="The loss contains an entropy bonus; that is a piece of its own.",
              answer="-torch.min(...).mean(), no more.")
def entropy_inside(probs, mb_action, mb_advantages, mb_logprobs, clip_coef):
    rows = clipped(right_ratio(probs.log_prob(mb_action), mb_logprobs), normalised(mb_advantages), clip_coef)
    return -rows.mean() - 0.01 * probs.entropy().mean()


@MISTAKES.add("calc_policy_loss", nudge="Of which actions do you need the probabilities?",
              pointer="You use the most likely actions instead of mb_action.", answer=RATIO)
def actions_ignored(probs, mb_action, mb_advantages, mb_logprobs, clip_coef):
    rows = clipped(right_ratio(probs.log_prob(probs.logits.argmax(1)), mb_logprobs), normalised(mb_advantages),
    clip_coef)
    return -rows.mean()


@MISTAKES.add("calc_policy_loss", nudge="Are the advantages that came in still what they were?",
              pointer="mb_advantages is changed in place: the next epoch would normalise it once more.",
              answer="advantages = (mb_advantages - ...) / ..., without -= and /=.")
def normalises_in_place(probs, mb_action, mb_advantages, mb_logprobs, clip_coef):
    mb_advantages.copy_(normalised(mb_advantages))
    return -clipped(right_ratio(probs.log_prob(mb_action), mb_logprobs), mb_advantages, clip_coef).mean()


# calc_value_function_loss ---------------------------------------------------------------------------------------------

def value(name, nudge, pointer, answer, loss):
    """Registers a wrong calc_value_function_loss; loss(v, returns, v_coef)."""
    def wrong(critic, mb_obs, mb_returns, v_coef):
        return loss(critic(mb_obs).squeeze(-1), mb_returns, v_coef)
    wrong.__name__ = name
    MISTAKES.add("calc_value_function_loss", nudge=nudge, pointer=pointer, answer=answer)(wrong)


VALUE = "v_coef * 0.5 * (critic(mb_obs).squeeze(-1) - mb_returns).square().mean()"

value("half_missing", "Compare with the definition, factor by factor.", "The factor 1/2 is missing.", VALUE,
      lambda v, y, c: c * F.mse_loss(v, y))
value("quarter", "Compare with the definition, factor by factor.", "There is one factor 1/2 too many.", VALUE,
      lambda v, y, c: c * 0.25 * F.mse_loss(v, y))
value("coefficient_missing", "Where is v_coef in your code?", "v_coef is missing.", VALUE, lambda v, y,
      c: 0.5 * F.mse_loss(v, y))
value("coefficient_squared", "How often does v_coef enter?", "v_coef enters twice.", VALUE,
      lambda v, y, c: c * c * 0.5 * F.mse_loss(v, y))
value("sum_of_squares", "Would your loss double with twice as many rows?", "You sum over the rows; it is their mean.",
      VALUE,
      lambda v, y, c: c * 0.5 * F.mse_loss(v, y, reduction="sum"))
value("squares_not_averaged", "How many numbers does an optimizer minimise?",
      "The loss still has one number per row.", VALUE,
      lambda v, y, c: c * 0.5 * (v - y).square())
value("absolute_error", "Which power of the error is averaged?",
      "You average the absolute error; it is the squared one.", VALUE,
      lambda v, y, c: c * 0.5 * F.l1_loss(v, y))
value("huber_loss", "Which power of the error is averaged, for large errors too?",
      "This is a Huber loss; the plain squared error is meant.", VALUE, lambda v, y, c: c * 0.5 * F.smooth_l1_loss(v,
      y))
value("root_of_the_mean", "Do you return the mean of the squares, or its root?",
      "You return the root of the mean squared error.",
      VALUE, lambda v, y, c: c * 0.5 * F.mse_loss(v, y).sqrt())
value("error_not_squared", "Can errors of opposite sign cancel in your loss?", "The error is not squared.", VALUE,
      lambda v, y, c: c * 0.5 * (v - y).mean())
value("mean_squared", "Mean of the squares, or square of the mean?",
      "You square the mean error; errors of opposite sign cancel.",
      VALUE, lambda v, y, c: c * 0.5 * (v - y).mean().square())
value("value_sign_flipped", "The optimizer minimises. Should the critic's error grow?", "The sign is wrong.", VALUE,
      lambda v, y, c: -c * 0.5 * F.mse_loss(v, y))
value("value_detached", "Through which tensor does the gradient reach the critic?",
      "The values are detached: the loss is right, but the critic gets no gradient.",
      "No no_grad(), detach() or item() here.",
      lambda v, y, c: (c * 0.5 * F.mse_loss(v, y)).detach())
value("column_minus_row", "Which shape has critic(mb_obs) - mb_returns?",
      "[M, 1] - [M] is [M, M]: every value is compared with every return.", "critic(mb_obs).squeeze(-1)",
      lambda v, y, c: c * 0.5 * (v[:, None] - y).square().mean())
value("returns_ignored", "With what is the critic compared?", "mb_returns is not used.", VALUE,
      lambda v, y, c: c * 0.5 * v.square().mean())
value("returns_normalised", "In which units does the critic think?",
      "The returns are normalised before they are compared.", VALUE,
      lambda v, y, c: c * 0.5 * F.mse_loss(v, (y - y.mean()) / (y.std() + 1e-8)))
value("variance_of_the_error", "Does your loss see that all values are too high by 5?",
      "This is the variance of the error: a constant error costs nothing.", VALUE,
      lambda v, y, c: c * 0.5 * (v - y).var(unbiased=False))


# calc_entropy_loss ----------------------------------------------------------------------------------------------------

def entropy(name, nudge, pointer, answer, loss):
    """Registers a wrong calc_entropy_loss."""
    loss.__name__ = name
    MISTAKES.add("calc_entropy_loss", nudge=nudge, pointer=pointer, answer=answer)(loss)


ENTROPY = "-ent_coef * probs.entropy().mean()"

entropy("entropy_sign", "Minimising your loss: does the policy become more random, or less?",
        "The sign is wrong: minimising your loss lowers the entropy.", ENTROPY, lambda probs,
        c: c * probs.entropy().mean())
entropy("entropy_without_coefficient", "Where is ent_coef in your code?", "ent_coef is missing.", ENTROPY,
        lambda probs, c: -probs.entropy().mean())
entropy("entropy_summed", "Would your loss double with twice as many rows?",
        "You sum over the rows; it is their mean.", ENTROPY,
        lambda probs, c: -c * probs.entropy().sum())
entropy("entropy_not_averaged", "How many numbers does an optimizer minimise?",
        "The loss still has one number per row.", ENTROPY,
        lambda probs, c: -c * probs.entropy())
entropy("entropy_detached", "Can loss.backward() reach the actor from what you return?", "The loss has no gradient.",
        "No no_grad(), detach() or item() here.", lambda probs, c: -c * probs.entropy().mean().detach())
entropy("entropy_in_bits", "Is ln 2 in your policy of two equal actions 1, or 0.69?",
        "Your entropy is in bits; nats are meant.",
        ENTROPY, lambda probs, c: -c * probs.entropy().mean() / 0.6931471805599453)
entropy("averaged_over_actions", "Is entropy a sum over the actions, or a mean?",
        "You average p log p over the actions too; entropy is a sum over them.", ENTROPY,
        lambda probs, c: c * (probs.probs * probs.logits).mean())
entropy("log_prob_of_the_best", "What does entropy average over?",
        "You take the log-probability of the most likely action; entropy is the mean over all of them.", ENTROPY,
        lambda probs, c: c * probs.logits.max(dim=1).values.mean())
entropy("entropy_of_the_mean_policy", "Entropy of each policy, or of their average?",
        "You average the policies first: two sure policies that disagree look random.", ENTROPY,
        lambda probs, c: c * (probs.probs.mean(0) * probs.probs.mean(0).log()).sum())
entropy("gini_index", "Which function of p does entropy sum?", "You sum p^2; entropy sums p log p.", ENTROPY,
        lambda probs, c: -c * (1 - probs.probs.square().sum(1)).mean())
entropy("perplexity", "Is there an exponential in the definition?", "You return the perplexity, exp(entropy).", ENTROPY,
        lambda probs, c: -c * probs.entropy().exp().mean())
entropy("coefficient_twice", "How often does ent_coef enter?", "ent_coef enters twice.", ENTROPY,
        lambda probs, c: -c * c * probs.entropy().mean())
