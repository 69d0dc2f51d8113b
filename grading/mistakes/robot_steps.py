"""Known mistakes of 04_continuous_control: ppo_update, all but the policy loss."""

import torch
from torch import nn
from torch.nn import functional as F

from grading.mistakes.robot_update import Update, wrong


@wrong(nudge="Who teaches the critic?",
       pointer="The critic's loss is not part of the sum.",
       answer="Add settings.value_coef * value_loss.")
class value_loss_missing(Update):
    def value_part(self, value_loss):
        return 0.0 * value_loss


@wrong(nudge="Which factor stands before the critic's loss, and is there another one?",
       pointer="The critic's loss is halved on top of value_coef.",
       answer="value_coef times the plain mean squared error.")
class value_loss_halved(Update):
    def value_part(self, value_loss):
        return 0.5 * self.settings.value_coef * value_loss


@wrong(nudge="Does your critic's loss change when value_coef does?",
       pointer="settings.value_coef is not used.",
       answer="settings.value_coef * value_loss.")
class value_coef_ignored(Update):
    def value_part(self, value_loss):
        return value_loss


@wrong(nudge="Squared error, or another one?",
       pointer="The critic's loss is the absolute error, not the squared one.",
       answer="F.mse_loss(values, returns).")
class absolute_value_loss(Update):
    def value_loss(self, values, returns):
        return F.l1_loss(values, returns)


@wrong(nudge="Squared error, or another one?",
       pointer="The critic's loss is Huber's, linear for large errors; here it is squared everywhere.",
       answer="F.mse_loss(values, returns).")
class huber_value_loss(Update):
    def value_loss(self, values, returns):
        return F.smooth_l1_loss(values, returns)


@wrong(nudge="Mean or sum?",
       pointer="The squared errors of the critic are summed: the loss grows with the minibatch.",
       answer="Their mean.")
class value_loss_summed(Update):
    def value_loss(self, values, returns):
        return F.mse_loss(values, returns, reduction="sum")


@wrong(nudge="The optimizer minimises the sum. Should the entropy fall?",
       pointer="The entropy has the wrong sign: the policy is pushed to be narrow.",
       answer="Subtract settings.entropy_coef * policy.entropy().")
class entropy_sign(Update):
    def entropy_part(self):
        return -super().entropy_part()


@wrong(nudge="With entropy_coef = 0.5, what changes in your loss?",
       pointer="The entropy bonus is missing.",
       answer="Subtract settings.entropy_coef * policy.entropy().")
class entropy_missing(Update):
    def entropy_part(self):
        return 0.0


@wrong(nudge="What happens to one huge gradient?",
       pointer="The gradient norm is not clipped, or too late: after the optimizer's step.",
       answer="nn.utils.clip_grad_norm_(parameters, settings.max_grad_norm), before optimizer.step().")
class norm_not_clipped(Update):
    def clip_gradients(self):
        pass


@wrong(nudge="How many gradient norms are there?",
       pointer="Policy and critic are clipped apart from each other; there is one norm over both.",
       answer="One call with [*policy.parameters(), *critic.parameters()].")
class two_norms(Update):
    def clip_gradients(self):
        for part in (self.policy, self.critic):
            nn.utils.clip_grad_norm_(part.parameters(), self.settings.max_grad_norm)


@wrong(nudge="Whose gradients are clipped?",
       pointer="Only the policy's gradients are clipped, and the critic's are left out of the norm.",
       answer="One call with [*policy.parameters(), *critic.parameters()].")
class only_the_policy_clipped(Update):
    def parameters(self):
        return [*self.policy.parameters()]


@wrong(nudge="A norm, or every single entry?",
       pointer="Every entry of the gradient is clipped; it is the norm that is to be bounded.",
       answer="clip_grad_norm_, not clip_grad_value_.")
class entries_clipped(Update):
    def clip_gradients(self):
        nn.utils.clip_grad_value_(self.parameters(), self.settings.max_grad_norm)


@wrong(nudge="What do p.grad hold before backward()?",
       pointer="Gradients of earlier minibatches are still there: zero_grad is missing.",
       answer="optimizer.zero_grad() before every backward().")
class gradients_pile_up(Update):
    def descend(self, loss):
        loss.backward()
        self.clip_gradients()
        self.optimizer.step()


@wrong(nudge="How often does each row of the batch go through the networks?",
       pointer="There is only one epoch, whatever settings.epochs says.",
       answer="for epoch in range(settings.epochs).")
class one_epoch_only(Update):
    def epochs(self):
        return 1


@wrong(nudge="In which order do the rows come?",
       pointer="The rows are never shuffled: neighbours in time stay together.",
       answer="torch.randperm(B), anew in each epoch.")
class never_shuffled(Update):
    def minibatches(self, epoch):
        return torch.arange(len(self.batch.obs)).split(self.settings.minibatch_size)


@wrong(nudge="Is the second epoch dealt like the first?",
       pointer="The same permutation serves all epochs.",
       answer="Call torch.randperm inside of the loop over epochs.")
class one_permutation(Update):
    def minibatches(self, epoch):
        if not epoch:
            self.shuffled = torch.randperm(len(self.batch.obs))
        return self.shuffled.split(self.settings.minibatch_size)


@wrong(nudge="How often does each row appear in one epoch?",
       pointer="Rows are drawn with replacement: some come twice, some never.",
       answer="torch.randperm, not torch.randint.")
class drawn_with_replacement(Update):
    def minibatches(self, epoch):
        B = len(self.batch.obs)
        return torch.randint(B, (B,)).split(self.settings.minibatch_size)


@wrong(nudge="10 rows, minibatches of 4: what becomes of the last two?",
       pointer="The rows left over at the end of an epoch are dropped.",
       answer="The last minibatch may be smaller.")
class rows_dropped(Update):
    def minibatches(self, epoch):
        M = min(self.settings.minibatch_size, len(self.batch.obs))
        return [rows for rows in super().minibatches(epoch) if len(rows) == M]


@wrong(nudge="How large is one of your minibatches?",
       pointer="The whole batch is used at once; settings.minibatch_size is ignored.",
       answer="torch.randperm(B).split(settings.minibatch_size).")
class whole_batch_at_once(Update):
    def minibatches(self, epoch):
        return [torch.randperm(len(self.batch.obs))]


@wrong(nudge="Can a KL divergence be negative?",
       pointer="kl is the mean of -log ratio; the estimate here is (ratio - 1) - log ratio.",
       answer="((ratio - 1) - log_ratio).mean().")
class plain_kl(Update):
    def kl(self, log_ratio):
        return -log_ratio.mean()


@wrong(nudge="Which rows count as clipped: those on one side, or on both?",
       pointer="clipfrac counts only ratios above 1 + clip.",
       answer="(ratio - 1).abs() > clip.")
class clipfrac_of_one_side(Update):
    def clipfrac(self, log_ratio):
        return (log_ratio.exp() > 1 + self.settings.clip).float().mean()


@wrong(nudge="The KL is too high. Should the next step be larger?",
       pointer="Extension: the learning rate moves in the wrong direction.",
       answer="kl > 2 target: divide by 1.5; kl < target / 2: multiply by 1.5.")
class rate_moves_the_wrong_way(Update):
    def factor(self, kl):
        return 1 / super().factor(kl)


@wrong(nudge="How many entries has optimizer.param_groups?",
       pointer="Extension: only the first parameter group gets the new learning rate.",
       answer="for group in optimizer.param_groups.")
class only_the_first_group(Update):
    def groups(self):
        return self.optimizer.param_groups[:1]


@wrong(nudge="Where does a rate end that grows by 1.5 again and again?",
       pointer="Extension: the learning rate has no upper bound.",
       answer="min(rate * 1.5, 1e-2).")
class rate_not_bounded(Update):
    def bounded(self, rate):
        return rate


@wrong(nudge="By which factor does the rate change?",
       pointer="Extension: the rate is doubled or halved; the factor is 1.5.",
       answer="* 1.5 and / 1.5.")
class rate_changes_by_2(Update):
    def factor(self, kl):
        return {1.5: 2.0, 1.0: 1.0}.get(super().factor(kl), 0.5)
