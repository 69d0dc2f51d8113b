"""Known mistakes of 03_ppo_details in the metrics."""

import torch

from grading.mistakes import Book

MISTAKES = Book()


def metric(piece, name, nudge, pointer, answer, wrong):
    """Registers a wrong metric; wrong(...) -> 0-d tensor or float."""
    def function(*given):
        return float(wrong(*given))
    function.__name__ = name
    MISTAKES.add(piece, nudge=nudge, pointer=pointer, answer=answer)(function)


OLD_KL, KL = "(old_logprobs - new_logprobs).mean().item()", "((ratio - 1) - log_ratio).mean().item()"
CLIPFRAC = "((ratio - 1).abs() > clip_coef).float().mean().item()"
EXPLAINED = "1 - (returns - values).var() / returns.var()"

metric("calc_old_approx_kl", "old_kl_sign",
       "If all actions have become less likely, what sign has the mean of log old - log new?",
       "The sign is wrong: this is the mean of log new - log old.", OLD_KL, lambda new, old: (new - old).mean())
metric("calc_old_approx_kl", "old_kl_sum", "Would it double with twice as many samples?", "You sum; it is a mean.",
       OLD_KL,
       lambda new, old: (old - new).sum())
metric("calc_old_approx_kl", "old_kl_absolute", "May this estimate be negative? Try it.",
       "You take absolute values; this plain estimate may be negative.", OLD_KL, lambda new,
       old: (old - new).abs().mean())
metric("calc_old_approx_kl", "old_kl_of_probabilities", "A difference of what, probabilities or logs?",
       "You subtract probabilities; the KL divergence subtracts their logs.", OLD_KL, lambda new,
       old: (old.exp() - new.exp()).mean())
metric("calc_old_approx_kl", "old_kl_weighted_again",
       "The samples come from the old policy already. Weight them once more?",
       "Each sample is weighted with its probability, but it was drawn with it already.", OLD_KL,
       lambda new, old: (old.exp() * (old - new)).mean())
metric("calc_old_approx_kl", "old_kl_squared", "Is there a square in the definition?",
       "You average half the squared log ratio; the plain estimate has no square.", OLD_KL,
       lambda new, old: 0.5 * (old - new).square().mean())

metric("calc_approx_kl", "kl_upside_down", "Is the ratio new over old, or old over new?", "The ratio is upside down.",
       KL,
       lambda new, old: ((old - new).exp() - 1 - (old - new)).mean())
metric("calc_approx_kl", "kl_is_the_plain_one", "Which of the two estimates is this?",
       "This is the plain estimate, the mean of -log ratio; the term (ratio - 1) is missing.", KL,
       lambda new, old: (old - new).mean())
metric("calc_approx_kl", "kl_without_minus_one", "What should it be if nothing has changed?", "The -1 is missing.", KL,
       lambda new, old: ((new - old).exp() - (new - old)).mean())
metric("calc_approx_kl", "kl_half_square", "Which function of the ratio does the definition name?",
       "You average half the squared log ratio; close by, but not the same.", KL, lambda new,
       old: 0.5 * (new - old).square().mean())
metric("calc_approx_kl", "kl_sum", "Would it double with twice as many samples?", "You sum; it is a mean.", KL,
       lambda new, old: ((new - old).exp() - 1 - (new - old)).sum())
metric("calc_approx_kl", "kl_sign", "May a KL divergence be negative?", "The sign is wrong.", KL,
       lambda new, old: -((new - old).exp() - 1 - (new - old)).mean())
metric("calc_approx_kl", "kl_adds_the_log", "Is the log ratio added, or subtracted?",
       "The log ratio is added; it is subtracted.",
       KL, lambda new, old: ((new - old).exp() - 1 + (new - old)).mean())

metric("calc_clipfrac", "clipfrac_one_sided", "Can a ratio be too small?",
       "Only ratios that are too large are counted.", CLIPFRAC,
       lambda new, old, c: ((new - old).exp() - 1 > c).float().mean())
metric("calc_clipfrac", "clipfrac_below_only", "Can a ratio be too large?",
       "Only ratios that are too small are counted.", CLIPFRAC,
       lambda new, old, c: (1 - (new - old).exp() > c).float().mean())
metric("calc_clipfrac", "clipfrac_of_log_ratios", "Of what is clip_coef the range, of ratios or of their logs?",
       "You compare the log ratio with clip_coef.", CLIPFRAC, lambda new, old,
       c: ((new - old).abs() > c).float().mean())
metric("calc_clipfrac", "clipfrac_inside", "Does 0 mean that nothing was clipped?",
       "You count the samples INSIDE the range.", CLIPFRAC,
       lambda new, old, c: ((new - old).exp().sub(1).abs() <= c).float().mean())
metric("calc_clipfrac", "clipfrac_counts", "A share lies between 0 and 1.",
       "You return the number of samples, not their share.",
       CLIPFRAC, lambda new, old, c: ((new - old).exp().sub(1).abs() > c).float().sum())
metric("calc_clipfrac", "clipfrac_fixed_range", "Where does your range come from?", "The range is the constant 0.2.",
       CLIPFRAC,
       lambda new, old, c: ((new - old).exp().sub(1).abs() > 0.2).float().mean())
metric("calc_clipfrac", "clipfrac_around_zero", "Which ratio means that nothing has changed?",
       "You compare the ratio itself with clip_coef; it is its distance from 1.", CLIPFRAC,
       lambda new, old, c: ((new - old).exp() > c).float().mean())
metric("calc_clipfrac", "clipfrac_percent", "A share lies between 0 and 1.", "You return a percentage.", CLIPFRAC,
       lambda new, old, c: 100 * ((new - old).exp().sub(1).abs() > c).float().mean())


def explained(name, nudge, pointer, wrong):
    """Registers a wrong calc_explained_variance that treats equal returns rightly, unless it returns None for them."""
    def function(values, returns):
        if returns.var(unbiased=False) == 0:
            return float("nan")
        return wrong(values, returns)
    metric("calc_explained_variance", name, nudge, pointer, EXPLAINED, function)


def _var(x):
    return x.var(unbiased=False)


explained("unexplained_variance", "A perfect critic: 1 or 0?", "The 1 - is missing: this is the UNexplained share.",
          lambda v, y: _var(y - v) / _var(y))
explained("mean_squared_error", "A critic that is right but for a constant explains everything.",
          "You use the mean squared error for the variance of the error: a constant error counts.",
          lambda v, y: 1 - (y - v).square().mean() / _var(y))
explained("variance_of_the_values", "Whose variance is to be explained?",
          "You divide by the variance of the values; it is that of the returns.",
          lambda v, y: 1 - _var(y - v) / _var(v) if _var(v) > 0 else float("nan"))
explained("ratio_of_variances", "A critic may vary a lot, and wrongly.",
          "You divide the two variances; the errors do not enter.",
          lambda v, y: _var(v) / _var(y))
explained("standard_deviations", "Variance, or its root?", "You use standard deviations; variances are meant.",
          lambda v, y: 1 - _var(y - v).sqrt() / _var(y).sqrt())
explained("squared_correlation", "A critic that says the opposite of the truth: does it explain anything?",
          "You return the squared correlation: it does not see that the critic may be wrong in scale or sign.",
          lambda v, y: torch.corrcoef(torch.stack([v.flatten(), y.flatten()]))[0, 1].square().nan_to_num(0.0))
explained("never_below_zero", "Can a critic be worse than a constant?",
          "You cut the result off at 0; a bad critic is below 0.",
          lambda v, y: (1 - _var(y - v) / _var(y)).clamp(min=0))
metric("calc_explained_variance", "equal_returns_divide_by_zero",
       "What does your formula give if all returns are equal?",
       "Where all returns are equal the variance is 0, and you divide by it: return nan there.",
       "if returns.var() == 0: return float('nan')", lambda v, y: 1 - _var(y - v) / _var(y))

metric("calc_entropy", "entropy_negative", "Is your most random policy the one with the largest number?",
       "The sign is wrong.",
       "probs.entropy().mean().item()", lambda probs: -probs.entropy().mean())
metric("calc_entropy", "entropy_total", "Would it double with twice as many rows?",
       "You sum over the rows; it is their mean.",
       "probs.entropy().mean().item()", lambda probs: probs.entropy().sum())
metric("calc_entropy", "entropy_bits", "Nats, or bits?", "Your entropy is in bits; nats are meant.",
       "probs.entropy().mean().item()", lambda probs: probs.entropy().mean() / 0.6931471805599453)
metric("calc_entropy", "entropy_relative", "Which number belongs to equal probabilities of two actions?",
       "You divide by the largest possible entropy; the plain mean in nats is meant.", "probs.entropy().mean().item()",
       lambda probs: probs.entropy().mean() / torch.tensor(float(probs.logits.shape[1])).log())
metric("calc_entropy", "entropy_of_first_row", "How many observations are there?", "Only the first row is used.",
       "probs.entropy().mean().item()", lambda probs: probs.entropy()[0])
metric("calc_entropy", "entropy_largest", "Mean, or largest?", "You return the largest entropy; the mean is meant.",
       "probs.entropy().mean().item()", lambda probs: probs.entropy().max())
metric("calc_entropy", "entropy_exponential", "Is there an exponential in the definition?", "You return exp(entropy).",
       "probs.entropy().mean().item()", lambda probs: probs.entropy().mean().exp())
