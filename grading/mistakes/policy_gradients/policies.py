"""Known mistakes of 01_policy_gradients: what is made of a policy's probabilities."""

import torch

from grading.mistakes import Book

MISTAKES = Book()
mistake = MISTAKES.add


# policy_gradient_loss -------------------------------------------------------------------------------------------------

def _loss(logits, actions, returns, baselines=None, *, score=None, weigh=None, reduce=None, detach=True):
    """The loss with replaced parts.

    score   logits -> [B, A], of which the taken action's entry is used
    weigh   (returns, baselines) -> weights [B]
    reduce  [B] -> 0-d
    """
    scores = torch.log_softmax(logits, dim=1) if score is None else score(logits)
    taken = scores.gather(1, actions.unsqueeze(1)).squeeze(1)
    subtracted = returns if baselines is None else returns - baselines
    weights = subtracted if weigh is None else weigh(returns, torch.zeros_like(returns) if baselines is None else baselines)
    product = taken * (weights.detach() if detach else weights)
    return -product.mean() if reduce is None else -reduce(product)


@mistake("policy_gradient_loss",
         nudge="Optimisers go downhill. Where do you want to go?",
         pointer="The sign is wrong: minimising this makes good actions less likely.",
         answer="The loss is minus the mean: return -(taken * weights).mean().")
def loss_without_minus(*batch):
    return -_loss(*batch)


@mistake("policy_gradient_loss",
         nudge="Does your loss have the same size for a batch of 10 and of 1000 rows?",
         pointer="You sum over the rows where the mean is asked for.",
         answer="End with .mean() in place of .sum().")
def loss_is_a_sum(*batch):
    return _loss(*batch, reduce=torch.sum)


@mistake("policy_gradient_loss",
         nudge="The theorem has a logarithm. Where is yours?",
         pointer="You weigh the probability of the action, not its logarithm.",
         answer="Use torch.log_softmax(logits, dim=1) in place of softmax.")
def loss_of_probabilities(*batch):
    return _loss(*batch, score=lambda logits: torch.softmax(logits, dim=1))


@mistake("policy_gradient_loss",
         nudge="Are logits log-probabilities? Do their exponentials sum to 1?",
         pointer="You use the logits as they are; they are not normalised.",
         answer="torch.log_softmax(logits, dim=1) makes log-probabilities of them.")
def loss_of_raw_logits(*batch):
    return _loss(*batch, score=lambda logits: logits)


@mistake("policy_gradient_loss",
         nudge="Over what do the probabilities sum to 1: over the actions, or over the batch?",
         pointer="The softmax runs over the rows of the batch; it must run over the actions.",
         answer="log_softmax(logits, dim=1): dimension 1 is the actions.")
def loss_softmax_over_the_batch(*batch):
    return _loss(*batch, score=lambda logits: torch.log_softmax(logits, dim=0))


@mistake("policy_gradient_loss",
         nudge="Does your result change when baselines are given?",
         pointer="The baselines are ignored.",
         answer="The weights are returns - baselines where baselines is not None.")
def loss_ignores_the_baselines(*batch):
    return _loss(*batch, weigh=lambda returns, baselines: returns)


@mistake("policy_gradient_loss",
         nudge="A return that is just as expected: what weight should its action have?",
         pointer="The baselines are added; they must be subtracted.",
         answer="The weights are returns - baselines.")
def loss_adds_the_baselines(*batch):
    return _loss(*batch, weigh=lambda returns, baselines: returns + baselines)


@mistake("policy_gradient_loss",
         nudge="An action that was better than expected: is its weight positive?",
         pointer="You subtract the returns from the baselines; it is the other way round.",
         answer="The weights are returns - baselines, not baselines - returns.")
def loss_subtracts_the_returns(*batch):
    return _loss(*batch, weigh=lambda returns, baselines: returns - baselines if not baselines.any()
                 else baselines - returns)


@mistake("policy_gradient_loss",
         nudge="Which of the three inputs should an optimiser be able to change?",
         pointer="Gradients flow into the returns and the baselines: a critic would be ruined by them.",
         answer="Detach the weights: (returns - baselines).detach().")
def loss_with_gradients_in_the_weights(*batch):
    return _loss(*batch, detach=False)


@mistake("policy_gradient_loss",
         nudge="What does the optimiser do with a loss that has no gradient?",
         pointer="The value is right, but no gradient reaches the logits: they were detached, or under no_grad.",
         answer="Detach the weights only; the log-probabilities must keep their gradient.")
def loss_without_gradient(*batch):
    return _loss(*batch).detach()


@mistake("policy_gradient_loss",
         nudge="What shape has the product of a [B, 1] and a [B] tensor?",
         pointer="A dimension is left over: [B, 1] times [B] became [B, B], every action weighed with every return.",
         answer="Put .squeeze(1) after the gather, so that both are [B].")
def loss_broadcasts_to_a_square(logits, actions, returns, baselines=None):
    taken = torch.log_softmax(logits, dim=1).gather(1, actions.unsqueeze(1))
    weights = returns if baselines is None else returns - baselines
    return -(taken * weights.detach()).mean()


@mistake("policy_gradient_loss",
         nudge="Which action's probability should rise: the one that was taken, or the likeliest?",
         pointer="You use the likeliest action of each row, not the one that was taken.",
         answer="Take entry actions[b] of row b, with gather.")
def loss_of_the_likeliest_action(logits, actions, *rest):
    return _loss(logits, logits.argmax(dim=1), *rest)


@mistake("policy_gradient_loss",
         nudge="Are actions that were not taken part of the sum?",
         pointer="All actions of a row are averaged; only the one that was taken counts.",
         answer="Pick one entry per row with gather before you multiply.")
def loss_of_all_actions(logits, actions, *rest):
    return _loss(logits, actions, *rest, score=lambda z: torch.log_softmax(z, 1).mean(1, keepdim=True).expand(z.shape))


# kl_categorical -------------------------------------------------------------------------------------------------------

def _log(logits_p, logits_q):
    return torch.log_softmax(logits_p, dim=1), torch.log_softmax(logits_q, dim=1)


@mistake("kl_categorical",
         nudge="The KL is not symmetric. Under which policy is the mean taken?",
         pointer="This is KL(q || p): the two policies are exchanged.",
         answer="Weigh with p, the first argument: (log_p.exp() * (log_p - log_q)).sum(dim=1).")
def kl_the_other_way_round(logits_p, logits_q):
    log_p, log_q = _log(logits_p, logits_q)
    return (log_q.exp() * (log_q - log_p)).sum(dim=1)


@mistake("kl_categorical",
         nudge="Can a KL divergence be negative?",
         pointer="The sign is wrong: it is log p - log q, not log q - log p.",
         answer="(log_p.exp() * (log_p - log_q)).sum(dim=1).")
def kl_with_the_wrong_sign(logits_p, logits_q):
    log_p, log_q = _log(logits_p, logits_q)
    return (log_p.exp() * (log_q - log_p)).sum(dim=1)


@mistake("kl_categorical",
         nudge="Under which of the two policies is the mean taken?",
         pointer="The log-ratio is right, but it is weighed with q in place of p.",
         answer="The weight is log_p.exp().")
def kl_weighed_with_q(logits_p, logits_q):
    log_p, log_q = _log(logits_p, logits_q)
    return (log_q.exp() * (log_p - log_q)).sum(dim=1)


@mistake("kl_categorical",
         nudge="What is the KL of two equal policies?",
         pointer="This is the cross-entropy; the entropy of p has to be taken off.",
         answer="Use log_p - log_q in place of -log_q.")
def kl_is_the_cross_entropy(logits_p, logits_q):
    log_p, log_q = _log(logits_p, logits_q)
    return -(log_p.exp() * log_q).sum(dim=1)


@mistake("kl_categorical",
         nudge="How many states are there, and how many numbers do you return?",
         pointer="You average over the states; one KL per state is asked for.",
         answer="Sum over the actions only: .sum(dim=1), and no mean.")
def kl_is_a_mean_over_states(logits_p, logits_q):
    log_p, log_q = _log(logits_p, logits_q)
    return (log_p.exp() * (log_p - log_q)).sum(dim=1).mean()


@mistake("kl_categorical",
         nudge="An expectation is a sum of weighted terms. Is there anything to divide by?",
         pointer="You take the mean over the actions; the weights p are the mean already.",
         answer="Use .sum(dim=1) in place of .mean(dim=1).")
def kl_is_a_mean_over_actions(logits_p, logits_q):
    log_p, log_q = _log(logits_p, logits_q)
    return (log_p.exp() * (log_p - log_q)).mean(dim=1)


@mistake("kl_categorical",
         nudge="Are logits log-probabilities? Do their exponentials sum to 1?",
         pointer="The log-ratio is made of raw logits, which are not normalised.",
         answer="Use torch.log_softmax(logits, dim=1) for both policies.")
def kl_of_raw_logits(logits_p, logits_q):
    return (torch.softmax(logits_p, dim=1) * (logits_p - logits_q)).sum(dim=1)


@mistake("kl_categorical",
         nudge="What is log(0), and what is 0 times it?",
         pointer="Right for ordinary numbers, but where a probability underflows to 0 the logarithm is -inf.",
         answer="Take log_softmax of the logits, not the log of a softmax.")
def kl_by_the_log_of_a_softmax(logits_p, logits_q):
    p, q = torch.softmax(logits_p, dim=1), torch.softmax(logits_q, dim=1)
    return (p * (p.log() - q.log())).sum(dim=1)


@mistake("kl_categorical",
         nudge="Over what do the probabilities sum to 1: over the actions, or over the batch?",
         pointer="The softmax runs over the states; it must run over the actions.",
         answer="log_softmax(logits, dim=1): dimension 1 is the actions.")
def kl_softmax_over_states(logits_p, logits_q):
    log_p, log_q = torch.log_softmax(logits_p, dim=0), torch.log_softmax(logits_q, dim=0)
    return (log_p.exp() * (log_p - log_q)).sum(dim=1)


@mistake("kl_categorical",
         nudge="In which unit do you measure?",
         pointer="These are bits; the course measures in nats, with the natural logarithm.",
         answer="Do not divide by log 2: torch.log_softmax is in nats already.")
def kl_in_bits(logits_p, logits_q):
    log_p, log_q = _log(logits_p, logits_q)
    return (log_p.exp() * (log_p - log_q)).sum(dim=1) / torch.log(torch.tensor(2.0))


# clipped_objective ----------------------------------------------------------------------------------------------------

def _clip(ratio, epsilon):
    return ratio.clamp(1 - epsilon, 1 + epsilon)


@mistake("clipped_objective",
         nudge="A = -2 and the ratio has risen to 1.5. Should that still be pushed back?",
         pointer="Only the clipped term is used; the minimum with the unclipped one is missing.",
         answer="return torch.min(ratio * advantages, clipped * advantages)")
def objective_only_clipped(ratio, advantages, epsilon):
    return _clip(ratio, epsilon) * advantages


@mistake("clipped_objective",
         nudge="What keeps the ratio near 1 in your code?",
         pointer="Nothing is clipped: epsilon has no effect.",
         answer="Take the minimum with ratio.clamp(1 - epsilon, 1 + epsilon) * advantages.")
def objective_not_clipped(ratio, advantages, epsilon):
    return ratio * advantages


@mistake("clipped_objective",
         nudge="Is PPO an optimist or a pessimist?",
         pointer="You take the better of the two terms, so the clip works on the wrong sides; take the worse one.",
         answer="torch.min in place of torch.max.")
def objective_takes_the_maximum(ratio, advantages, epsilon):
    return torch.max(ratio * advantages, _clip(ratio, epsilon) * advantages)


@mistake("clipped_objective",
         nudge="What has to stay between 1 - epsilon and 1 + epsilon?",
         pointer="You clip the product with the advantage; it is the ratio that is clipped.",
         answer="ratio.clamp(1 - epsilon, 1 + epsilon), then times the advantages.")
def objective_clips_the_product(ratio, advantages, epsilon):
    product = ratio * advantages
    return torch.min(product, product.clamp(1 - epsilon, 1 + epsilon))


@mistake("clipped_objective",
         nudge="A < 0 and the ratio is far below 1: has enough been done?",
         pointer="The range has no lower end: the ratio is clipped above only.",
         answer="clamp needs both ends: ratio.clamp(1 - epsilon, 1 + epsilon).")
def objective_clips_above_only(ratio, advantages, epsilon):
    return torch.min(ratio * advantages, ratio.clamp(max=1 + epsilon) * advantages)


@mistake("clipped_objective",
         nudge="A > 0 and the ratio is far above 1: has enough been done?",
         pointer="The range has no upper end: the ratio is clipped below only.",
         answer="clamp needs both ends: ratio.clamp(1 - epsilon, 1 + epsilon).")
def objective_clips_below_only(ratio, advantages, epsilon):
    return torch.min(ratio * advantages, ratio.clamp(min=1 - epsilon) * advantages)


@mistake("clipped_objective",
         nudge="Around which value does the ratio start?",
         pointer="The range lies around 0; a ratio that has not changed is 1.",
         answer="The ends are 1 - epsilon and 1 + epsilon.")
def objective_clips_around_zero(ratio, advantages, epsilon):
    return torch.min(ratio * advantages, ratio.clamp(-epsilon, epsilon) * advantages)


@mistake("clipped_objective",
         nudge="An objective is made large, a loss is made small. Which is asked for?",
         pointer="The sign is turned: this is the loss, and the objective is asked for.",
         answer="Return the minimum without a minus; the loss takes the minus later.")
def objective_is_a_loss(ratio, advantages, epsilon):
    return -torch.min(ratio * advantages, _clip(ratio, epsilon) * advantages)


@mistake("clipped_objective",
         nudge="How many samples are there, and how many numbers do you return?",
         pointer="You average over the samples; one value per sample is asked for.",
         answer="Leave the .mean() out.")
def objective_is_a_mean(ratio, advantages, epsilon):
    return torch.min(ratio * advantages, _clip(ratio, epsilon) * advantages).mean()


@mistake("clipped_objective",
         nudge="What can an optimiser do with values that have no gradient?",
         pointer="The values are right, but no gradient reaches the ratio.",
         answer="Do not detach the ratio, and do not compute under no_grad.")
def objective_without_gradient(ratio, advantages, epsilon):
    return torch.min(ratio * advantages, _clip(ratio, epsilon) * advantages).detach()


@mistake("clipped_objective",
         nudge="What is taken first: the minimum of two ratios, or of two products?",
         pointer="You take the minimum of the ratios and then multiply: for A < 0 that is the maximum of the products.",
         answer="Multiply both with the advantages first, then take the minimum.")
def objective_minimum_of_the_ratios(ratio, advantages, epsilon):
    return torch.min(ratio, _clip(ratio, epsilon)) * advantages
