"""Known mistakes of 04_continuous_control: ppo_update, the policy loss. The rest of it: robot_steps."""

import torch
from torch import nn
from torch.nn import functional as F

from grading.mistakes import Book

MISTAKES = Book()
mistake = MISTAKES.add


class Update:
    """A right ppo_update in parts; every mistake below replaces one of them."""

    def __call__(self, policy, critic, optimizer, batch, settings):
        self.policy, self.critic, self.optimizer, self.batch, self.settings = policy, critic, optimizer, batch, settings
        kls, clipfracs = [], []
        for epoch in range(self.epochs()):
            mine = []
            for rows in self.minibatches(epoch):
                advantages = self.normalised(batch.advantages[rows])
                log_ratio = policy.log_prob(batch.obs[rows], batch.actions[rows]) - self.old(rows)
                policy_loss = self.policy_loss(log_ratio, advantages)
                value_loss = self.value_loss(critic(batch.obs[rows]), batch.returns[rows])
                self.descend(policy_loss + self.value_part(value_loss) - self.entropy_part())
                with torch.no_grad():
                    mine.append(self.kl(log_ratio))
                    clipfracs.append(self.clipfrac(log_ratio))
            kls += mine
            self.adapt(torch.stack(mine).mean().item())
        return {"kl": torch.stack(kls).mean().item(), "clipfrac": torch.stack(clipfracs).mean().item()}

    def epochs(self):
        return self.settings.epochs

    def minibatches(self, epoch):
        return torch.randperm(len(self.batch.obs)).split(self.settings.minibatch_size)

    def normalised(self, advantages):
        return (advantages - advantages.mean()) / (advantages.std() + 1e-8)

    def old(self, rows):
        return self.batch.log_probs[rows]

    def clipped(self, ratio):
        return ratio.clamp(1 - self.settings.clip, 1 + self.settings.clip)

    def policy_loss(self, log_ratio, advantages):
        ratio = log_ratio.exp()
        return -torch.minimum(ratio * advantages, self.clipped(ratio) * advantages).mean()

    def value_loss(self, values, returns):
        return F.mse_loss(values, returns)

    def value_part(self, value_loss):
        return self.settings.value_coef * value_loss

    def entropy_part(self):
        return self.settings.entropy_coef * self.policy.entropy()

    def parameters(self):
        return [*self.policy.parameters(), *self.critic.parameters()]

    def clip_gradients(self):
        nn.utils.clip_grad_norm_(self.parameters(), self.settings.max_grad_norm)

    def descend(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        self.clip_gradients()
        self.optimizer.step()

    def kl(self, log_ratio):
        return (log_ratio.exp() - 1 - log_ratio).mean()

    def clipfrac(self, log_ratio):
        ratio = log_ratio.exp()
        return (self.clipped(ratio) != ratio).float().mean()

    def factor(self, kl):
        target = self.settings.target_kl
        return 1 / 1.5 if kl > 2 * target else 1.5 if kl < target / 2 else 1.0

    def groups(self):
        return self.optimizer.param_groups

    def adapt(self, kl):
        if self.settings.target_kl is not None:
            for group in self.groups():
                group["lr"] = self.bounded(group["lr"] * self.factor(kl))

    def bounded(self, rate):
        return min(max(rate, 1e-5), 1e-2)


def wrong(**hints):
    """Decorator over a subclass of Update: registers a function that makes a fresh one for every call."""
    def register(cls):
        def ppo_update(policy, critic, optimizer, batch, settings):
            return cls()(policy, critic, optimizer, batch, settings)
        ppo_update.__name__ = cls.__name__
        mistake("ppo_update", **hints)(ppo_update)
        return cls
    return register


@wrong(nudge="A minibatch of only good actions: are all of them better than usual?",
       pointer="The advantages are not normalised.",
       answer="(advantages - advantages.mean()) / (advantages.std() + 1e-8), for each minibatch.")
class advantages_not_normalised(Update):
    def normalised(self, advantages):
        return advantages


@wrong(nudge="Which two things does normalising do?",
       pointer="The mean of the advantages is not subtracted.",
       answer="(advantages - advantages.mean()) / (advantages.std() + 1e-8).")
class advantages_not_centred(Update):
    def normalised(self, advantages):
        return advantages / (advantages.std() + 1e-8)


@wrong(nudge="Which two things does normalising do?",
       pointer="The advantages are centred, but not divided by their standard deviation.",
       answer="(advantages - advantages.mean()) / (advantages.std() + 1e-8).")
class advantages_not_scaled(Update):
    def normalised(self, advantages):
        return advantages - advantages.mean()


@wrong(nudge="Variance or standard deviation: which one makes the spread 1?",
       pointer="The advantages are divided by their variance.",
       answer="Divide by advantages.std() + 1e-8.")
class advantages_divided_by_variance(Update):
    def normalised(self, advantages):
        return (advantages - advantages.mean()) / (advantages.var() + 1e-8)


@wrong(nudge="The optimizer goes downhill. Where do you want the objective to go?",
       pointer="The sign of the policy loss is wrong: good actions become rarer.",
       answer="The loss is minus the mean of the minimum.")
class policy_loss_sign(Update):
    def policy_loss(self, log_ratio, advantages):
        return -super().policy_loss(log_ratio, advantages)


@wrong(nudge="PPO is pessimistic: of two estimates, which one does it believe?",
       pointer="You take the larger of the two terms; PPO takes the smaller one.",
       answer="torch.minimum(ratio * A, clipped * A), before the minus.")
class larger_of_the_two(Update):
    def policy_loss(self, log_ratio, advantages):
        ratio = log_ratio.exp()
        return -torch.maximum(ratio * advantages, self.clipped(ratio) * advantages).mean()


@wrong(nudge="What holds the policy back when a ratio has run far away?",
       pointer="Nothing is clipped in the policy loss.",
       answer="torch.minimum(ratio * A, ratio.clamp(1 - clip, 1 + clip) * A).")
class ratio_not_clipped(Update):
    def policy_loss(self, log_ratio, advantages):
        return -(log_ratio.exp() * advantages).mean()


@wrong(nudge="A ratio of 1.5 with a negative advantage went the wrong way. May its gradient vanish?",
       pointer="Only the clipped term is used: rows that went the wrong way can never come back.",
       answer="The minimum of the unclipped and the clipped term.")
class only_the_clipped_term(Update):
    def policy_loss(self, log_ratio, advantages):
        return -(self.clipped(log_ratio.exp()) * advantages).mean()


@wrong(nudge="Around which number does the ratio lie, and around which its logarithm?",
       pointer="The logarithm of the ratio is clipped, not the ratio.",
       answer="First exp, then clamp.")
class log_ratio_clipped(Update):
    def policy_loss(self, log_ratio, advantages):
        clipped = log_ratio.clamp(-self.settings.clip, self.settings.clip).exp()
        return -torch.minimum(log_ratio.exp() * advantages, clipped * advantages).mean()


@wrong(nudge="New over old, or old over new?",
       pointer="The ratio is upside down.",
       answer="exp(new log_probs - old log_probs).")
class ratio_upside_down(Update):
    def policy_loss(self, log_ratio, advantages):
        return super().policy_loss(-log_ratio, advantages)


@wrong(nudge="Is the clip range the one that the settings name?",
       pointer="The clip range is 0.2, whatever settings.clip says.",
       answer="Use settings.clip.")
class clip_fixed_at_0_2(Update):
    def clipped(self, ratio):
        return ratio.clamp(0.8, 1.2)


@wrong(nudge="What are your ratios in the second epoch? Print the largest |ratio - 1|.",
       pointer="The old log-probabilities are computed again with the policy of today: the ratio is always 1.",
       answer="Use batch.log_probs, made when the actions were drawn.")
class old_log_probs_recomputed(Update):
    def old(self, rows):
        with torch.no_grad():
            return self.policy.log_prob(self.batch.obs[rows], self.batch.actions[rows])
