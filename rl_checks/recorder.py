"""The flight recorder: cheap invariants of a training loop, looked at while it runs.

    recorder = FlightRecorder(agent, optimizer, envs, args)      # before training
    recorder.rollout(rollout)                                    # after every rollout
    recorder.minibatch(new_logprobs, mb, row)                    # after every minibatch
    recorder.update()                                            # after every update

Each finding is said once, with the update in which it was seen and its likely cause. T steps, N envs, B = T * N rows.
"""

import contextlib
import math
from dataclasses import dataclass

import torch

_listeners = []


@dataclass(frozen=True)
class Finding:
    """One broken invariant: what was seen, in which update, and what usually causes it."""

    key: str
    update: int
    seen: str
    cause: str

    def __str__(self):
        return f"flight recorder, update {self.update}: {self.seen}\n    Likely cause: {self.cause}"


class FlightStopped(RuntimeError):
    """A recorder that was asked to stop has found something; .finding is what."""

    def __init__(self, finding):
        super().__init__(str(finding))
        self.finding = finding


@contextlib.contextmanager
def listening():
    """Within this block findings go into the list that it yields, and are not printed."""
    findings = []
    _listeners.append(findings)
    try:
        yield findings
    finally:
        _listeners.remove(findings)


class FlightRecorder:
    """Watches one training run.

    agent      has actor and critic, and log_std if its actions are continuous
    optimizer  torch.optim.Optimizer
    envs       vector environment
    args       num_steps, num_envs, batch_size, minibatch_size, num_minibatches, update_epochs, num_updates,
               learning_rate, max_grad_norm
    stop       raise FlightStopped at the first finding instead of going on
    """

    def __init__(self, agent, optimizer, envs, args, stop=False):
        self.agent, self.optimizer, self.args, self.stop = agent, optimizer, args, stop
        self.findings, self.number, self.last = [], 1, None
        self.alike, self.beginnings = False, set()
        self.gradients = _Gradients(agent, optimizer)
        self.discrete = hasattr(envs.single_action_space, "n")
        self.most_entropy = math.log(envs.single_action_space.n) if self.discrete else math.inf
        self._new_update()
        mode = getattr(envs.metadata.get("autoreset_mode"), "value", None)
        if mode != "SameStep":
            self.found("autoreset", f"the environments reset in mode {mode}, and this loop is written for SameStep",
                       "after every end comes a filler row whose action nobody took: name AutoresetMode.SAME_STEP.")

    def found(self, key, seen, cause):
        """Notes a finding, once per key; prints it, or hands it to whoever is listening."""
        if any(finding.key == key for finding in self.findings):
            return
        finding = Finding(key, self.number, seen, cause)
        self.findings.append(finding)
        if self.stop:
            raise FlightStopped(finding)
        if _listeners:
            _listeners[-1].append(finding)
        else:
            print(finding)

    def rollout(self, rollout):
        """Looks at a rollout before anything is learned from it: everything in it can still be computed again."""
        self.rows = rollout
        for name in ("obs", "actions", "logprobs", "rewards", "dones", "values"):
            column = getattr(rollout, name)
            if column.requires_grad:
                self.found("graph", f"rollout.{name} carries gradients", "collecting is not inside torch.no_grad().")
            if tuple(column.shape[:2]) != (self.args.num_steps, self.args.num_envs):
                self.found("shape", f"rollout.{name} has shape {tuple(column.shape)}",
                           "its first two dimensions are num_steps and num_envs.")
                return
            if not torch.isfinite(column.float()).all():
                self.found("finite", f"rollout.{name} is not finite", "a network or a reward has overflowed.")
                return
        with torch.no_grad():
            self._actions_belong(rollout)
            self._values_belong(rollout)
        self._goes_on(rollout)
        self._seeds_differ(rollout)
        self.keys = _row_keys(rollout.obs.flatten(0, 1), rollout.logprobs.flatten(), rollout.values.flatten())

    def _actions_belong(self, rollout):
        logprobs, score, mean, variance = _policy(self.agent, rollout.obs, rollout.actions)
        if (logprobs - rollout.logprobs).abs().max() > 1e-3:
            self.found("logprobs", "the stored log-probabilities do not belong to the stored actions and observations",
                       "obs[t] is the observation AFTER the step, or the action stored is not the one that was scored.")
        # Are they drawn from the policy? Below a variance of 25 chance has too long a tail for seven standard errors.
        error, surprise = float(variance.sum().sqrt()), float((score - mean).sum())
        if error > 5 and abs(surprise) > 7 * error:
            self.found("sampling", "the actions are not those that the policy would draw, by "
                       f"{abs(surprise) / error:.0f} standard errors",
                       "the most likely action is taken, or a random one; sample().")

    def _values_belong(self, rollout):
        values = self.agent.critic(rollout.obs.flatten(0, 1)).reshape(rollout.values.shape)
        if (values - rollout.values).abs().max() > 1e-3 * (1 + values.abs().max()):
            self.found("values", "the stored values are not what the critic says of the stored observations",
                       "values belong to another observation, or were stored from another network.")

    def _goes_on(self, rollout):
        if self.last is not None:
            obs, done = self.last
            if not torch.equal(rollout.obs[0], obs):
                self.found("continuity", "this rollout does not begin where the last one ended",
                           "next_obs was not carried over, or the environments were reset.")
            if not torch.equal(rollout.dones[0].float(), done.float()):
                self.found("first_done", "the first row of dones is not what the last rollout ended with",
                           "next_done was not carried over.")
        self.last = rollout.next_obs.clone(), rollout.next_done.clone()

    def _seeds_differ(self, rollout):
        """Did all environments begin alike, although episodes begin in many ways?"""
        if self.number == 1:
            self.alike = rollout.obs.shape[1] > 1 and bool((rollout.obs[0] == rollout.obs[0, :1]).all())
        if self.alike and len(self.beginnings) < 8:
            self.beginnings |= {tuple(row) for row in rollout.obs[rollout.dones.bool()].flatten(1).tolist()}
            if len(self.beginnings) >= 8:
                self.found("same_seed", "all environments began alike, and later episodes begin in many ways",
                           "the environments share one seed: envs.reset(seed=args.seed) gives each its own.")

    def minibatch(self, new_logprobs, mb, row):
        """Looks at one minibatch after its step; new_logprobs are those that its loss was computed from."""
        deviation = float(((new_logprobs - mb.logprobs).exp() - 1).abs().max())
        if not self.deviations and deviation > 1e-2:
            self.found("first_ratio", f"the very first ratio of an update is {deviation:.2g} away from 1",
                       "log-probabilities, actions and observations of a minibatch come from different rows.")
        self.deviations.append(deviation)
        gap = float((mb.returns - mb.values - mb.advantages).abs().max())
        if gap > 1e-3 * (1 + float(mb.returns.abs().max())):
            self.found("returns", "returns are not advantages + values", "make_minibatches, or fields in the wrong order.")
        self.seen.append(_row_keys(mb.obs, mb.logprobs, mb.values))
        self.spread = max(self.spread, float(mb.advantages.max() - mb.advantages.min()))
        self.error = max(self.error, float((mb.returns - mb.values).abs().max()))
        self.entropy = entropy = row["losses/entropy"]
        kl, clipfrac = (row[f"losses/{name}"] for name in ("approx_kl", "clipfrac"))
        if not -1e-3 <= entropy <= self.most_entropy + 1e-3 and self.discrete:
            self.found("entropy", f"the entropy is {entropy:.3g}, outside of [0, ln A]",
                       "calc_entropy, or the policy's logits.")
        if not math.isfinite(row["losses/policy_loss"] + row["losses/value_loss"]):
            self.found("nan", "a loss is not finite",
                       "a learning rate too high, a logarithm of 0, or a division by a std of 0.")
        self.kls.append(kl)
        self.clipfracs.append(clipfrac)

    def update(self):
        """Looks back on a whole update."""
        self._epochs()
        # Nothing to learn where all advantages are equal, nothing to move where the policy is already sure.
        calm = {"actor": self.spread < 1e-4 or self.entropy < 0.02, "critic": self.error < 1e-4}
        if len(self.deviations) > 1 and max(self.deviations) < 1e-6 and self.gradients.steps and not calm["actor"]:
            self.found("ratio_one", "every ratio of this update is exactly 1",
                       "the old log-probabilities are computed anew in every epoch, or the optimizer does not move the actor.")
        if not self.deviations:
            self.found("metrics", "no minibatch was reported", "metrics.add is not called, or there are no minibatches.")
        if self.kls and sum(self.kls) / len(self.kls) > 0.5:
            self.found("kl", f"the mean KL of this update is {sum(self.kls) / len(self.kls):.2g}",
                       "the learning rate is too high, there is no clip, or the gradient is not clipped.")
        if self.clipfracs and sum(self.clipfracs) / len(self.clipfracs) > 0.8:
            self.found("clipfrac", "more than 80 % of the samples are outside of the clip range",
                       "the learning rate is too high, or the policy loss has no clip.")
        for key, seen, cause in self.gradients.findings(self.args, calm):
            self.found(key, seen, cause)
        self._learning_rate()
        self.number += 1
        self._new_update()

    def _epochs(self):
        """Every epoch deals every row once, in a new order."""
        if not self.seen or not hasattr(self, "keys"):
            return
        rows, expected = torch.cat(self.seen), self.args.update_epochs * self.args.batch_size
        if len(rows) != expected:
            self.found("epochs", f"an update learned from {len(rows)} rows; {self.args.update_epochs} epochs have {expected}",
                       "the number of epochs, or rows that are left out of the minibatches.")
            return
        epochs = rows.reshape(self.args.update_epochs, -1)
        if not torch.equal(epochs[0].sort().values, self.keys.sort().values):
            self.found("rows", "the rows of an epoch are not the rows of the rollout, each once",
                       "rows left out or drawn twice, fields of different rows put together, or old log-probabilities "
                       "replaced.")
        if any(not torch.equal(epoch.sort().values, epochs[0].sort().values) for epoch in epochs[1:]):
            self.found("constant", "the old log-probabilities or values change from epoch to epoch",
                       "they are computed anew; they must stay what they were when the actions were taken.")
        if len(self.keys.unique()) > len(self.keys) / 2:  # rows that look alike tell nothing about their order
            if torch.equal(epochs[0], self.keys):
                self.found("unshuffled", "the minibatches come in the order of the rollout",
                           "minibatch_indexes does not shuffle.")
            elif len(epochs) > 1 and torch.equal(epochs[0], epochs[1]):
                self.found("same_order", "two epochs dealt the rows in the same order",
                           "the minibatches are made once instead of once per epoch, or the shuffle is seeded anew.")

    def _learning_rate(self):
        for group in self.optimizer.param_groups:
            planned = self.args.learning_rate * (1 - self.number / self.args.num_updates)
            if abs(group["lr"] - planned) > 0.02 * self.args.learning_rate:
                self.found("learning_rate", f"after update {self.number} of {self.args.num_updates} the learning rate is "
                           f"{group['lr']:.3g}; on the straight line to 0 it would be {planned:.3g}",
                           "scheduler.step() is called once per update; initial_lr is args.learning_rate and end_lr is 0.")

    def _new_update(self):
        self.deviations, self.seen, self.kls, self.clipfracs = [], [], [], []
        self.spread = self.error = self.entropy = 0.0
        self.gradients.forget()


class _Gradients:
    """What the optimizer is given, seen from hooks: lengths, and whether they are those of the last backward."""

    def __init__(self, agent, optimizer):
        self.networks = {name: list(getattr(agent, name).parameters()) for name in ("actor", "critic")}
        self.everything = [p for p in agent.parameters() if p.requires_grad]
        self.watched = {name: parameters[-2] for name, parameters in self.networks.items()}  # the last layer's weights
        self.arrived = dict.fromkeys(self.watched)
        for name, parameter in self.watched.items():
            parameter.register_hook(lambda gradient, name=name: self._arrives(name, gradient))
        optimizer.register_step_pre_hook(lambda *_: self._before_step())
        moved = {id(p) for group in optimizer.param_groups for p in group["params"]}
        self.left_out = [name for name, parameters in self.networks.items() if any(id(p) not in moved for p in parameters)]
        self.forget()

    def forget(self):
        self.steps, self.norms, self.stale, self.erased, self.apart = 0, [], False, False, False
        self.reached = dict.fromkeys(self.watched, False)

    def _arrives(self, name, gradient):
        before = self.arrived[name]
        self.arrived[name] = gradient.detach().clone() if before is None else before + gradient.detach()

    def _before_step(self):
        self.steps += 1
        grads = [p.grad for p in self.everything if p.grad is not None]
        self.norms.append(float(torch.stack(torch._foreach_norm(grads)).norm()) if grads else 0.0)
        factors = []
        for name, parameter in self.watched.items():
            arrived, kept = self.arrived[name], parameter.grad
            self.arrived[name] = None
            if kept is not None and kept.any():
                self.reached[name] = True
            if arrived is None or not arrived.any():
                continue
            if kept is None or not kept.any():
                self.erased = True
                continue
            length = float(arrived.norm())
            if length > 1e-7:
                cosine = float((arrived * kept).sum()) / (length * float(kept.norm()))
                self.stale |= cosine < 0.999
                factors.append(float(kept.norm()) / length)
        if len(factors) == 2 and not self.stale:
            self.apart |= abs(factors[0] - factors[1]) > 0.01 * max(factors)

    def findings(self, args, calm):
        """(key, seen, cause) of what this update's gradients show; calm: {network: there is nothing to learn}."""
        expected = args.update_epochs * args.num_minibatches
        if self.left_out:
            yield ("left_out", f"the optimizer does not have all parameters of the {' and the '.join(self.left_out)}",
                   "optim.Adam(agent.parameters(), ...).")
        if self.steps != expected:
            yield ("steps", f"{self.steps} optimizer steps in an update; {args.update_epochs} epochs of {args.num_minibatches} "
                   f"minibatches have {expected}", "optimizer.step() belongs into the innermost loop.")
        for name, reached in self.reached.items():
            if self.steps and not reached and not calm[name]:
                yield (f"no_gradient_{name}", f"the {name} got no gradient in a whole update",
                       "its loss is detached or left out of the sum, or zero_grad comes after backward.")
        if self.erased:
            yield ("erased", "gradients were erased between backward and step", "zero_grad belongs before backward.")
        if self.stale:
            yield ("stale", "the optimizer steps along something else than the last backward gave",
                   "zero_grad is missing, or the gradient is clipped number by number.")
        if self.apart:
            yield ("apart", "the gradients of actor and critic are shortened by different factors",
                   "clip_grad_norm_ takes all parameters of the agent together.")
        if self.norms and max(self.norms) > 1.01 * args.max_grad_norm:
            yield ("norm", f"a gradient of length {max(self.norms):.3g} reached the optimizer; max_grad_norm is "
                   f"{args.max_grad_norm:g}", "clip_grad_norm_ is missing, or comes after optimizer.step().")


def _policy(agent, obs, actions):
    """Log-probabilities [T, N] of the actions, and a score [T, N] of each with the mean and variance that drawn ones have.

    The score is 1 for the most likely action and 0 for others; for continuous actions it is the squared distance.
    """
    outputs = agent.actor(obs.flatten(0, 1)).reshape(*obs.shape[:2], -1)
    if hasattr(agent, "log_std"):
        log_std = agent.log_std.flatten()
        z = (actions.reshape(outputs.shape) - outputs) / log_std.exp()
        D = z.shape[-1]
        score = z.square().sum(-1)
        mean = torch.full_like(score, D)
        return -0.5 * score - (log_std + 0.5 * math.log(2 * math.pi)).sum(), score, mean, 2 * mean
    table = torch.log_softmax(outputs, dim=-1)
    best, likeliest = table.exp().max(-1)
    score = (actions == likeliest).float()
    return table.gather(-1, actions.long()[..., None]).squeeze(-1), score, best, best * (1 - best)


def _row_keys(obs, logprobs, values):
    """One number [B] per row that changes with every field, to tell rows apart without comparing them all."""
    flat = obs.flatten(1).double()
    weights = torch.arange(1, flat.shape[1] + 1, dtype=torch.float64, device=flat.device).sqrt()
    return (flat * weights).sum(1) + 1.6180339887 * logprobs.detach().double() + 0.5772156649 * values.detach().double()
