"""Known mistakes of 03_ppo_details in learning_phase."""

import torch
from torch import nn
from torch.distributions import Categorical

from grading.mistakes import Book

MISTAKES = Book()


def policy(agent, obs):
    """The helper of the notebook, for actions that are counted."""
    return Categorical(logits=agent.actor(obs), validate_args=False)


# A right learning_phase in parts, as methods to replace.
# The five pieces below are replaced while the observer looks, as the notebook's are for a student.

def _piece(*arguments, **options):
    raise NotImplementedError


compute_advantages = make_minibatches = calc_policy_loss = calc_value_function_loss = calc_entropy_loss = _piece


class Learn:
    """A right learning_phase in parts."""

    def __call__(self, agent, optimizer, scheduler, rollout, metrics, args):
        self.agent, self.optimizer, self.scheduler, self.rollout, self.args = agent, optimizer, scheduler, rollout, args
        advantages = self.advantages()
        for _ in range(self.epochs(args)):
            for mb in self.deal(advantages):
                self.learn(mb, metrics)
            self.after_epoch()
        self.after_update()

    def next_value(self):
        with torch.no_grad():
            return self.agent.critic(self.rollout.next_obs).reshape(1, -1)

    def advantages(self):
        r, args = self.rollout, self.args
        return compute_advantages(self.next_value(), r.next_done, r.rewards, r.values, r.dones, r.obs.device,
        args.gamma,
                                  args.gae_lambda)

    def epochs(self, args):
        return args.update_epochs

    def deal(self, advantages):
        r, args = self.rollout, self.args
        return make_minibatches(r.obs, r.logprobs, r.actions, advantages, r.values, r.obs.shape[2:],
        r.actions.shape[2:],
                                args.batch_size, args.minibatch_size)

    def losses(self, mb):
        args, probs = self.args, policy(self.agent, mb.obs)
        return (probs, calc_policy_loss(probs, mb.actions, mb.advantages, mb.logprobs, args.clip_coef),
                calc_value_function_loss(self.agent.critic, mb.obs, mb.returns, args.vf_coef),
                calc_entropy_loss(probs, args.ent_coef))

    def learn(self, mb, metrics):
        probs, policy_loss, value_loss, entropy_loss = self.losses(mb)
        self.forget()
        self.total(policy_loss, value_loss, entropy_loss).backward()
        self.clip()
        self.step()
        self.report(metrics, probs, mb, policy_loss, value_loss)

    def total(self, policy_loss, value_loss, entropy_loss):
        return policy_loss + value_loss + entropy_loss

    def forget(self):
        self.optimizer.zero_grad()

    def clip(self):
        nn.utils.clip_grad_norm_(self.agent.parameters(), self.args.max_grad_norm)

    def step(self):
        self.optimizer.step()

    def report(self, metrics, probs, mb, policy_loss, value_loss):
        metrics.add(probs, mb, policy_loss, value_loss)

    def after_epoch(self):
        pass

    def after_update(self):
        self.scheduler.step()


def learning(name, nudge, pointer, answer, **parts):
    """Registers a learning_phase with replaced parts."""
    version = type(name, (Learn,), parts)

    def wrong(*arguments):
        version()(*arguments)
    wrong.__name__ = name
    MISTAKES.add("learning_phase", nudge=nudge, pointer=pointer, answer=answer)(wrong)


STEP = "optimizer.zero_grad(), loss.backward(), clip_grad_norm_, optimizer.step(), in this order."

learning("gradients_pile_up", "What does backward() do to gradients that are there already?",
         "zero_grad is missing: every step adds the gradients of all minibatches before.", STEP,
         forget=lambda self: None)


def _forgets_late(self, mb, metrics):
    probs, policy_loss, value_loss, entropy_loss = self.losses(mb)
    self.total(policy_loss, value_loss, entropy_loss).backward()
    self.optimizer.zero_grad()
    self.clip()
    self.step()
    self.report(metrics, probs, mb, policy_loss, value_loss)


learning("gradients_erased", "Which gradients does the step see?",
         "zero_grad comes between backward and step: nothing is learned.",
         STEP, learn=_forgets_late)
learning("gradient_not_clipped", "Detail 11: how long may the gradient be?",
         "The gradient is not clipped, or only after the optimizer has used it.",
         "nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)", clip=lambda self: None)


def _clips_each(self):
    for network in (self.agent.actor, self.agent.critic):
        nn.utils.clip_grad_norm_(network.parameters(), self.args.max_grad_norm)


learning("networks_clipped_apart", "One norm for all parameters, or one for each network?",
         "Actor and critic are clipped separately; the norm is over all parameters together.",
         "nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)", clip=_clips_each)
learning("only_the_actor_clipped", "Over which parameters is the norm taken?", "Only the actor's gradient is clipped.",
         "nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)",
         clip=lambda self: nn.utils.clip_grad_norm_(self.agent.actor.parameters(), self.args.max_grad_norm))
learning("only_the_critic_clipped", "Over which parameters is the norm taken?",
         "Only the critic's gradient is clipped.",
         "nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)",
         clip=lambda self: nn.utils.clip_grad_norm_(self.agent.critic.parameters(), self.args.max_grad_norm))
learning("clipped_by_value", "Is the gradient's length limited, or each of its numbers?",
         "Each number of the gradient is clipped; its length is meant.",
         "clip_grad_norm_, not clip_grad_value_",
         clip=lambda self: nn.utils.clip_grad_value_(self.agent.parameters(), self.args.max_grad_norm))


learning("scheduler_forgotten", "Print the learning rate of every update.", "scheduler.step() is never called.",
         "scheduler.step(), once at the end of the update.", after_update=lambda self: None)
learning("scheduler_per_epoch", "How often is scheduler.step() called per update?",
         "scheduler.step() is called after every epoch: the learning rate falls too fast.",
         "scheduler.step(), once at the end of the update.", after_epoch=lambda self: self.scheduler.step(),
         after_update=lambda self: None)
learning("scheduler_per_minibatch", "How often is scheduler.step() called per update?",
         "scheduler.step() is called after every minibatch: the learning rate falls too fast.",
         "scheduler.step(), once at the end of the update.",
         step=lambda self: (self.optimizer.step(), self.scheduler.step()), after_update=lambda self: None)
learning("one_epoch_only", "How often is each rollout used?", "There is one epoch; there should be args.update_epochs.",
         "for _ in range(args.update_epochs)", epochs=lambda self, args: 1)
learning("one_epoch_too_many", "How often is each rollout used?", "There is one epoch too many.",
         "for _ in range(args.update_epochs)", epochs=lambda self, args: args.update_epochs + 1)


def _dealt_once(self, advantages):
    if not hasattr(self, "dealt"):
        self.dealt = Learn.deal(self, advantages)
    return self.dealt


learning("dealt_once_for_all_epochs", "Does every epoch see the same minibatches?",
         "The minibatches are made once, before the epochs; every epoch should shuffle anew.",
         "make_minibatches inside the loop over epochs.", deal=_dealt_once)
learning("nothing_after_the_rollout", "What does the critic expect after the last step?", "next_value is 0.",
         "agent.critic(rollout.next_obs), without gradient.",
         next_value=lambda self: torch.zeros(1, len(self.rollout.next_obs)))
learning("value_of_the_last_observation", "Which observation comes after the last step?",
         "next_value is V of the last observation acted on; it is V(rollout.next_obs).",
         "agent.critic(rollout.next_obs)",
         next_value=lambda self: self.agent.critic(self.rollout.obs[-1]).detach().reshape(1, -1))
learning("next_value_keeps_the_graph", "Is a target allowed to move with the network?",
         "next_value carries a gradient, and so do the targets.", "with torch.no_grad():",
         next_value=lambda self: self.agent.critic(self.rollout.next_obs).reshape(1, -1))


def _advantages(**changed):
    def advantages(self):
        r, a = self.rollout, self.args
        given = {"next_value": self.next_value(), "next_done": r.next_done, "rewards": r.rewards, "values": r.values,
                 "dones": r.dones, "device": r.obs.device, "gamma": a.gamma, "gae_lambda": a.gae_lambda}
        return compute_advantages(*(given | {name: value(r, a) for name, value in changed.items()}).values())
    return advantages


learning("gamma_and_lambda_in_the_wrong_order", "In which order does compute_advantages take its arguments?",
         "gamma and gae_lambda are swapped.", "compute_advantages(..., args.gamma, args.gae_lambda)",
         advantages=_advantages(gamma=lambda r, a: a.gae_lambda, gae_lambda=lambda r, a: a.gamma))
learning("last_dones_for_next_done", "What did the last step say?",
         "next_done is the last row of dones; it is rollout.next_done.",
         "compute_advantages(next_value, rollout.next_done, ...)", advantages=_advantages(next_done=lambda r,
         a: r.dones[-1]))


def _minibatches(**changed):
    def deal(self, advantages):
        r, a = self.rollout, self.args
        given = {"obs": r.obs, "logprobs": r.logprobs, "actions": r.actions, "advantages": advantages,
        "values": r.values,
                 "obs_shape": r.obs.shape[2:], "action_shape": r.actions.shape[2:], "batch_size": a.batch_size,
                 "minibatch_size": a.minibatch_size}
        return make_minibatches(*(given | {name: value(self, given) for name, value in changed.items()}).values())
    return deal


learning("advantages_normalised_over_the_batch", "Who normalises the advantages?",
         "You normalise the advantages over the batch, so the returns for the critic are wrong; calc_policy_loss does it.",
         "Hand them on as compute_advantages returned them.",
         deal=_minibatches(advantages=lambda self,
         g: (g["advantages"] - g["advantages"].mean()) / g["advantages"].std()))
learning("values_and_advantages_swapped", "In which order does make_minibatches take its arguments?",
         "advantages and values are swapped.", "make_minibatches(obs, logprobs, actions, advantages, values, ...)",
         deal=_minibatches(advantages=lambda self, g: g["values"],
                           values=lambda self, g: g["advantages"]))


def _fresh_logprobs(self, given):
    with torch.no_grad():
        return policy(self.agent, given["obs"]).log_prob(given["actions"])


learning("logprobs_computed_anew", "Which policy took these actions?",
         "The old log-probabilities are computed again with the present policy; they were stored when the actions were taken.",
         "rollout.logprobs", deal=_minibatches(logprobs=_fresh_logprobs))


def _losses(**changed):
    def losses(self, mb):
        a, probs = self.args, policy(self.agent, mb.obs)
        given = {"advantages": mb.advantages, "logprobs": mb.logprobs, "returns": mb.returns}
        given |= {name: value(mb, probs) for name, value in changed.items()}
        return (probs, calc_policy_loss(probs, mb.actions, given["advantages"], given["logprobs"], a.clip_coef),
                calc_value_function_loss(self.agent.critic, mb.obs, given["returns"], a.vf_coef),
                calc_entropy_loss(probs, a.ent_coef))
    return losses


learning("ratio_is_always_one", "Does your ratio ever leave 1?",
         "The policy loss gets the present log-probabilities as the old ones.",
         "calc_policy_loss(..., mb.logprobs, ...)",
         losses=_losses(logprobs=lambda mb, probs: probs.log_prob(mb.actions).detach()))
learning("critic_learns_advantages", "What should the critic have said?", "The critic's targets are the advantages.",
         "calc_value_function_loss(agent.critic, mb.obs, mb.returns, args.vf_coef)",
         losses=_losses(returns=lambda mb, probs: mb.advantages))
learning("critic_learns_old_values", "What should the critic have said?",
         "The critic's targets are its own old values.",
         "calc_value_function_loss(agent.critic, mb.obs, mb.returns, args.vf_coef)",
         losses=_losses(returns=lambda mb, probs: mb.values))
learning("returns_for_the_policy", "By what is the ratio multiplied?",
         "The policy loss gets returns instead of advantages.",
         "calc_policy_loss(probs, mb.actions, mb.advantages, ...)", losses=_losses(advantages=lambda mb,
         probs: mb.returns))
learning("policy_loss_left_out", "Which three losses are added?", "The policy loss is missing in the sum.",
         "policy_loss + value_loss + entropy_loss", total=lambda self, p, v, e: v + e)
learning("value_loss_left_out", "Which three losses are added?", "The value loss is missing in the sum.",
         "policy_loss + value_loss + entropy_loss", total=lambda self, p, v, e: p + e)
learning("entropy_loss_left_out", "Which three losses are added?", "The entropy loss is missing in the sum.",
         "policy_loss + value_loss + entropy_loss", total=lambda self, p, v, e: p + v)
learning("entropy_loss_subtracted", "calc_entropy_loss is a loss already. Which sign does it get?",
         "The entropy loss is subtracted; it has its minus sign already.", "policy_loss + value_loss + entropy_loss",
         total=lambda self, p, v, e: p + v - e)
learning("coefficients_applied_twice", "Which piece multiplies by vf_coef?",
         "The value loss is multiplied by vf_coef once more.", "policy_loss + value_loss + entropy_loss",
         total=lambda self, p, v, e: p + self.args.vf_coef * v + e)
learning("entropy_coefficient_twice", "Which piece multiplies by ent_coef?",
         "The entropy loss is multiplied by ent_coef once more.", "policy_loss + value_loss + entropy_loss",
         total=lambda self, p, v, e: p + v + self.args.ent_coef * e)
learning("no_step", "Who moves the weights?", "optimizer.step() is never called.", STEP, step=lambda self: None)


def _steps_per_epoch(self, mb, metrics):
    probs, policy_loss, value_loss, entropy_loss = self.losses(mb)
    self.forget()
    self.total(policy_loss, value_loss, entropy_loss).backward()
    self.report(metrics, probs, mb, policy_loss, value_loss)


learning("one_step_per_epoch", "How many steps does an epoch of four minibatches take?",
         "optimizer.step() is called once per epoch; it is called after every minibatch.", STEP, learn=_steps_per_epoch,
         after_epoch=lambda self: (self.clip(), self.step()))
learning("metrics_forgotten", "What do the curves show?", "metrics.add is never called.",
         "metrics.add(probs, mb, policy_loss, value_loss), once per minibatch.",
         report=lambda self, *given: None)
learning("metrics_swapped", "In which order does metrics.add take the losses?",
         "policy_loss and value_loss are swapped in metrics.add.",
         "metrics.add(probs, mb, policy_loss, value_loss)",
         report=lambda self, metrics, probs, mb, policy_loss, value_loss: metrics.add(probs, mb, value_loss,
         policy_loss))
