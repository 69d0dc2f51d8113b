"""Known mistakes of 02_lunar_lander: wrong versions of compute_loss."""

import torch
from torch.nn import functional as F

from grading.mistakes import Book

MISTAKES = Book()
mistake = MISTAKES.add


def ppo_loss(ppo, states, actions, advantages, critic_targets, log_probs_old, *, ratio=None, objective=None,
             critic_loss=None):
    """Both losses with replaced parts: ratio (new, old) -> ratio; objective (ratio, A, eps) -> rows; critic_loss."""
    log_probs = torch.log_softmax(ppo.actor(states), dim=-1).gather(1, actions[:, None]).squeeze(1)
    ratio = torch.exp(log_probs - log_probs_old) if ratio is None else ratio(log_probs, log_probs_old)
    rows = (objective or _clipped)(ratio, advantages, ppo.epsilon)
    values = ppo.critic(states).squeeze(-1)
    return -rows.mean(), (critic_loss or F.mse_loss)(values, critic_targets)


def _clipped(ratio, advantages, epsilon):
    return torch.minimum(ratio * advantages, ratio.clamp(1 - epsilon, 1 + epsilon) * advantages)


def _objective(name, objective, *, nudge, pointer, answer):
    def wrong(ppo, *batch):
        return ppo_loss(ppo, *batch, objective=objective)
    wrong.__name__ = name
    mistake("compute_loss", nudge=nudge, pointer=pointer, answer=answer)(wrong)


_objective("not_clipped", lambda ratio, a, eps: ratio * a,
           nudge="What limits how far one update can move the policy?",
           pointer="The ratio is never clipped: this is the plain surrogate objective.",
           answer="torch.min(ratio * A, ratio.clamp(1 - epsilon, 1 + epsilon) * A)")
_objective("max_for_min", lambda ratio, a, eps: torch.maximum(ratio * a, ratio.clamp(1 - eps, 1 + eps) * a),
           nudge="Is L_clip the optimist's or the pessimist's choice of the two terms?",
           pointer="You take the larger of the two terms; the objective is a lower bound, so it takes the smaller.",
           answer="torch.min(...) of the two terms, and the loss is minus its mean.")
_objective("only_the_clipped_term", lambda ratio, a, eps: ratio.clamp(1 - eps, 1 + eps) * a,
           nudge="When the ratio has left the range on the harmful side, is there still a gradient?",
           pointer="The minimum with the unclipped term is missing: a bad move outside the range cannot be undone.",
           answer="torch.min(ratio * A, ratio.clamp(1 - epsilon, 1 + epsilon) * A)")
_objective("surrogate_clamped", lambda ratio, a, eps: torch.minimum(ratio * a, (ratio * a).clamp(1 - eps, 1 + eps)),
           nudge="What exactly lies between 1 - epsilon and 1 + epsilon?",
           pointer="You clamp ratio * advantage; only the ratio is clamped, then multiplied by the advantage.",
           answer="ratio.clamp(1 - epsilon, 1 + epsilon) * A")
_objective("clipped_above_only", lambda ratio, a, eps: torch.minimum(ratio * a, ratio.clamp(max=1 + eps) * a),
           nudge="Try a ratio of 0.5 with a negative advantage.",
           pointer="The ratio is clipped from above only.",
           answer="clamp needs both bounds: clamp(1 - epsilon, 1 + epsilon).")
_objective("clipped_below_only", lambda ratio, a, eps: torch.minimum(ratio * a, ratio.clamp(min=1 - eps) * a),
           nudge="Try a ratio of 1.5 with a positive advantage.",
           pointer="The ratio is clipped from below only.",
           answer="clamp needs both bounds: clamp(1 - epsilon, 1 + epsilon).")
_objective("epsilon_fixed", lambda ratio, a, eps: _clipped(ratio, a, 0.2),
           nudge="Where does your clip range come from?",
           pointer="The clip range is the constant 0.2 instead of self.epsilon.",
           answer="Use self.epsilon in both bounds.")
_objective("range_around_zero", lambda ratio, a, eps: torch.minimum(ratio * a, ratio.clamp(-eps, eps) * a),
           nudge="Which ratio means that nothing has changed?",
           pointer="The clip range lies around 0; a ratio is compared with 1.",
           answer="clamp(1 - epsilon, 1 + epsilon)")
_objective("loss_sign_flipped", lambda ratio, a, eps: -_clipped(ratio, a, eps),
           nudge="The optimiser minimises. What should the policy do with L_clip?",
           pointer="The sign of actor_loss is wrong: minimising it makes good actions less likely.",
           answer="actor_loss = -torch.min(...).mean()")
_objective("sum_for_mean", lambda ratio, a, eps: _clipped(ratio, a, eps) * len(a),
           nudge="Would your actor_loss double with a batch twice as large?",
           pointer="actor_loss sums over the rows; it is their mean.",
           answer=".mean() instead of .sum()")
_objective("advantages_normalised", lambda ratio, a, eps: _clipped(
    ratio, (a - a.mean()) / (a.std(unbiased=False) + 1e-8), eps),
           nudge="Who else normalises advantages?",
           pointer="compute_loss normalises the advantages; the training loop has done that already.",
           answer="Use the advantages as they come in.")
_objective("ratio_has_no_gradient", lambda ratio, a, eps: _clipped(ratio.detach(), a, eps) + 0.0 * ratio,
           nudge="Through which tensor does the gradient reach the actor?",
           pointer="The ratio is detached: the value is right, but no gradient reaches the actor.",
           answer="Keep the graph from self.actor to the loss: no detach(), item() or no_grad() on the way.")
_objective("clip_without_gradient_inside", lambda ratio, a, eps: torch.minimum(
    (ratio * a).detach(), ratio.clamp(1 - eps, 1 + eps) * a),
           nudge="Which of the two terms is used inside the clip range, and which one has a gradient?",
           pointer="The unclipped term is detached: part of the gradient is lost.",
           answer="Build both terms from the same ratio, with its graph.")


def _ratio(name, ratio, *, nudge, pointer, answer, objective=None):
    def wrong(ppo, *batch):
        return ppo_loss(ppo, *batch, ratio=ratio, objective=objective)
    wrong.__name__ = name
    mistake("compute_loss", nudge=nudge, pointer=pointer, answer=answer)(wrong)


_ratio("ratio_without_exp", lambda new, old: new - old,
       nudge="A difference of log-probabilities is the logarithm of what?",
       pointer="The exponential is missing: the difference of log-probabilities is the LOG of the ratio.",
       answer="ratio = torch.exp(log_probs - log_probs_old)")
_ratio("ratio_upside_down", lambda new, old: torch.exp(old - new),
       nudge="If an action has become more likely, is the ratio above or below 1?",
       pointer="The ratio is upside down: old over new.",
       answer="ratio = torch.exp(log_probs - log_probs_old)")
_ratio("ratio_of_logs", lambda new, old: new / old,
       nudge="p/q, written with log p and log q?",
       pointer="You divide log-probabilities; the ratio divides probabilities.",
       answer="ratio = torch.exp(log_probs - log_probs_old)")
_ratio("ratio_always_one", lambda new, old: torch.exp(new - new.detach()),
       nudge="Print your ratio after a few updates. Does it ever leave 1?",
       pointer="The old log-probabilities are computed anew instead of taken from log_probs_old: the ratio is always 1.",
       answer="Use the log_probs_old that came in; they were stored when the actions were taken.")
_ratio("log_ratio_clipped", lambda new, old: new - old,
       objective=lambda log_ratio, a, eps: torch.minimum(
           log_ratio.exp() * a, log_ratio.clamp(-eps, eps).exp() * a),
       nudge="exp(epsilon) is not 1 + epsilon.",
       pointer="You clip the log-ratio to +-epsilon and exponentiate afterwards; L_clip clips the ratio.",
       answer="ratio = exp(log_ratio) first, then ratio.clamp(1 - epsilon, 1 + epsilon).")
_ratio("plain_policy_gradient", lambda new, old: new, objective=lambda new, a, eps: new * a,
       nudge="Which policy collected these actions?",
       pointer="This is the vanilla policy gradient, log-probability times advantage: the ratio is missing.",
       answer="ratio = torch.exp(log_probs - log_probs_old), then clip.")


def _critic(name, critic_loss, *, nudge, pointer, answer):
    def wrong(ppo, *batch):
        return ppo_loss(ppo, *batch, critic_loss=critic_loss)
    wrong.__name__ = name
    mistake("compute_loss", nudge=nudge, pointer=pointer, answer=answer)(wrong)


_critic("critic_half", lambda v, y: 0.5 * F.mse_loss(v, y),
        nudge="Compare your critic_loss with the definition, factor by factor.",
        pointer="critic_loss has a factor 1/2 that this definition does not have.",
        answer="((values - critic_targets) ** 2).mean()")
_critic("critic_sum", lambda v, y: F.mse_loss(v, y, reduction="sum"),
        nudge="Would your critic_loss double with a batch twice as large?",
        pointer="critic_loss sums over the rows; it is their mean.",
        answer="((values - critic_targets) ** 2).mean()")
_critic("critic_l1", F.l1_loss,
        nudge="Which power of the error is averaged?",
        pointer="critic_loss averages the absolute error; it is the mean SQUARED error.",
        answer="((values - critic_targets) ** 2).mean()")
_critic("critic_huber", F.smooth_l1_loss,
        nudge="Which power of the error is averaged, for large errors too?",
        pointer="critic_loss is a Huber loss; here it is the plain mean squared error.",
        answer="((values - critic_targets) ** 2).mean()")
_critic("critic_root", lambda v, y: F.mse_loss(v, y).sqrt(),
        nudge="Do you return the mean of the squares or its root?",
        pointer="critic_loss is the root of the mean squared error.",
        answer="Leave the square root out.")
_critic("critic_sign", lambda v, y: -F.mse_loss(v, y),
        nudge="The optimiser minimises. Should the critic's error grow?",
        pointer="The sign of critic_loss is wrong.",
        answer="((values - critic_targets) ** 2).mean(), without a minus.")
_critic("critic_detached", lambda v, y: F.mse_loss(v.detach(), y) + 0.0 * v.sum(),
        nudge="Through which tensor does the gradient reach the critic?",
        pointer="The values are detached: the value is right, but no gradient reaches the critic.",
        answer="Compute the values with the graph, here no torch.no_grad().")
_critic("critic_column_minus_row", lambda v, y: (v[:, None] - y).square().mean(),
        nudge="What is the shape of values - critic_targets?",
        pointer="[B, 1] - [B] broadcasts to [B, B]: every value is compared with every target.",
        answer="values = self.compute_values(states), or squeeze the critic's output.")
_critic("critic_targets_ignored", lambda v, y: v.square().mean(),
        nudge="What is the critic compared with?",
        pointer="critic_loss does not use critic_targets.",
        answer="((values - critic_targets) ** 2).mean()")


@mistake("compute_loss",
         nudge="What is the critic compared with?",
         pointer="critic_loss compares the values with the advantages instead of critic_targets.",
         answer="((values - critic_targets) ** 2).mean()")
def critic_learns_advantages(ppo, states, actions, advantages, critic_targets, log_probs_old):
    return ppo_loss(ppo, states, actions, advantages, advantages, log_probs_old)


@mistake("compute_loss",
         nudge="Can loss.backward() reach a network from what you return?",
         pointer="Neither loss has a gradient: they are computed under no_grad() or detached.",
         answer="Take torch.no_grad(), detach() and item() out of compute_loss.")
def no_gradient_at_all(ppo, *batch):
    return tuple(loss.detach() for loss in ppo_loss(ppo, *batch))


@mistake("compute_loss",
         nudge="In which order are the two losses promised?",
         pointer="The two losses are swapped.",
         answer="return actor_loss, critic_loss")
def losses_swapped(ppo, *batch):
    return ppo_loss(ppo, *batch)[::-1]


@mistake("compute_loss",
         nudge="How many numbers does an optimiser minimise?",
         pointer="actor_loss still has one entry per row: the mean is missing.",
         answer="actor_loss = -torch.min(...).mean()")
def actor_loss_not_averaged(ppo, *batch):
    rows = []
    _, critic = ppo_loss(ppo, *batch, objective=lambda ratio, a, eps: rows.append(_clipped(ratio, a, eps)) or rows[0])
    return -rows[0], critic


@mistake("compute_loss",
         nudge="Which terms did the definition ask for?",
         pointer="actor_loss contains the critic's loss; the training loop adds the two.",
         answer="Return the two losses apart.")
def critic_inside_actor_loss(ppo, *batch):
    actor, critic = ppo_loss(ppo, *batch)
    return actor + 0.5 * critic, critic


@mistake("compute_loss",
         nudge="Which terms did the definition ask for?",
         pointer="actor_loss contains an entropy bonus; this notebook trains without one.",
         answer="actor_loss = -torch.min(...).mean(), and nothing else.")
def entropy_inside_actor_loss(ppo, states, *batch):
    actor, critic = ppo_loss(ppo, states, *batch)
    log_probs = torch.log_softmax(ppo.actor(states), dim=-1)
    return actor + 0.01 * (log_probs.exp() * log_probs).sum(1).mean(), critic


@mistake("compute_loss",
         nudge="Are the actor's outputs probabilities or logits?",
         pointer="The log-probabilities are the log of the raw outputs' sigmoid: outputs of the actor are logits of a softmax.",
         answer="Use self.compute_log_probs(states, actions).")
def sigmoid_for_softmax(ppo, states, actions, advantages, critic_targets, log_probs_old):
    log_probs = F.logsigmoid(ppo.actor(states)).gather(1, actions[:, None]).squeeze(1)
    rows = _clipped(torch.exp(log_probs - log_probs_old), advantages, ppo.epsilon)
    return -rows.mean(), F.mse_loss(ppo.critic(states).squeeze(-1), critic_targets)


@mistake("compute_loss",
         nudge="Is softmax(x) a logarithm already?",
         pointer="The logarithm is missing: you use probabilities where log-probabilities belong.",
         answer="Use self.compute_log_probs(states, actions).")
def probabilities_for_log_probs(ppo, states, actions, advantages, critic_targets, log_probs_old):
    probs = torch.softmax(ppo.actor(states), dim=-1).gather(1, actions[:, None]).squeeze(1)
    rows = _clipped(torch.exp(probs - log_probs_old), advantages, ppo.epsilon)
    return -rows.mean(), F.mse_loss(ppo.critic(states).squeeze(-1), critic_targets)
