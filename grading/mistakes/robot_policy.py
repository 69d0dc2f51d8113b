"""Known mistakes of 04_continuous_control: GaussianPolicy."""

import math

import torch
from torch import nn

from grading.mistakes import Book

MISTAKES = Book()
mistake = MISTAKES.add


class Policy(nn.Module):
    """A right policy; every mistake below replaces one method."""

    last_gain = 0.01

    def __init__(self, obs_dim, action_dim, log_std=-1.0):
        super().__init__()
        last = nn.Linear(64, action_dim)
        nn.init.orthogonal_(last.weight, self.last_gain)
        nn.init.zeros_(last.bias)
        self.mean = nn.Sequential(nn.Linear(obs_dim, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), last)
        self.log_std = self.first_log_std(action_dim, log_std)

    def first_log_std(self, action_dim, log_std):
        return nn.Parameter(torch.full((action_dim,), float(log_std)))

    def forward(self, obs):
        return self.mean(obs)

    def std(self):
        return self.log_std.exp()

    def noise(self, mean):
        return torch.randn_like(mean)

    @torch.no_grad()
    def sample(self, obs):
        mean = self.mean(obs)
        return mean + self.std() * self.noise(mean)

    def terms(self, obs, actions):
        """[..., A]: the terms whose sum is the log-probability."""
        z = (actions - self.mean(obs)) / self.std()
        return -0.5 * z.square() - self.log_std - 0.5 * math.log(2 * math.pi)

    def log_prob(self, obs, actions):
        return self.terms(obs, actions).sum(-1)

    def entropy(self):
        return (self.log_std + 0.5 * math.log(2 * math.pi * math.e)).sum()


@mistake("GaussianPolicy",
         nudge="How many log-probabilities does one action of the robot have?",
         pointer="log_prob gives one number for each motor; an action is one draw and has one log-probability.",
         answer="Sum over the last dimension: (...).sum(-1).")
class log_prob_not_summed(Policy):
    def log_prob(self, obs, actions):
        return self.terms(obs, actions)


@mistake("GaussianPolicy",
         nudge="Independent events: what do you do with their probabilities, and so with the logarithms?",
         pointer="log_prob takes the mean over the motors; log-densities of independent components add up.",
         answer="sum(-1), not mean(-1).")
class log_prob_averaged(Policy):
    def log_prob(self, obs, actions):
        return self.terms(obs, actions).mean(-1)


@mistake("GaussianPolicy",
         nudge="How many numbers should log_prob give for a batch of B observations?",
         pointer="log_prob sums over the whole batch; only the motors of one action belong together.",
         answer="sum(-1): over the last dimension alone.")
class log_prob_summed_over_everything(Policy):
    def log_prob(self, obs, actions):
        return self.terms(obs, actions).sum()


@mistake("GaussianPolicy",
         nudge="A density integrates to 1, whatever its width. Which term sees to that?",
         pointer="log_prob lacks the term -log(sigma): a wider policy would not be less dense.",
         answer="Each motor's term is -z^2 / 2 - log_std - log(2 pi) / 2.")
class log_std_term_missing(Policy):
    def terms(self, obs, actions):
        return super().terms(obs, actions) + self.log_std


@mistake("GaussianPolicy",
         nudge="Compare your log_prob with the worked example: by how much are you off, for each motor?",
         pointer="log_prob lacks the constant -log(2 pi) / 2 of each motor.",
         answer="Each motor's term is -z^2 / 2 - log_std - log(2 pi) / 2.")
class constant_missing(Policy):
    def terms(self, obs, actions):
        return super().terms(obs, actions) + 0.5 * math.log(2 * math.pi)


@mistake("GaussianPolicy",
         nudge="What is z: the distance to the mean in units of what?",
         pointer="You divide the squared distance by sigma, not by its square.",
         answer="z = (actions - mean) / std, and then z squared.")
class divided_by_std_once(Policy):
    def terms(self, obs, actions):
        return -0.5 * (actions - self.mean(obs)).square() / self.std() - self.log_std - 0.5 * math.log(2 * math.pi)


@mistake("GaussianPolicy",
         nudge="The exponent of the Gaussian carries a factor. Which one?",
         pointer="The factor 1/2 before z squared is missing in log_prob.",
         answer="-0.5 * z.square().")
class half_missing(Policy):
    def terms(self, obs, actions):
        z = (actions - self.mean(obs)) / self.std()
        return -z.square() - self.log_std - 0.5 * math.log(2 * math.pi)


@mistake("GaussianPolicy",
         nudge="self.log_std holds a logarithm. Of what?",
         pointer="The standard deviation is the exponential of log_std; you use log_std itself as the width.",
         answer="std = self.log_std.exp().")
class log_std_used_as_std(Policy):
    def std(self):
        return self.log_std


@mistake("GaussianPolicy",
         nudge="Standard deviation or variance: which one do you draw with?",
         pointer="exp(log_std) is the standard deviation; you treat it as the variance.",
         answer="Multiply the noise by log_std.exp() itself, not by its root.")
class log_std_taken_for_log_variance(Policy):
    def std(self):
        return (0.5 * self.log_std).exp()


@mistake("GaussianPolicy",
         nudge="Which tensors does policy.parameters() list?",
         pointer="log_std is no parameter: no optimizer will ever change it.",
         answer="self.log_std = nn.Parameter(torch.full((action_dim,), log_std)).")
class log_std_is_no_parameter(Policy):
    def first_log_std(self, action_dim, log_std):
        return torch.full((action_dim,), float(log_std))


@mistake("GaussianPolicy",
         nudge="Where does log_std start, and where did you want it to start?",
         pointer="log_std starts at 0 whatever the argument says.",
         answer="torch.full((action_dim,), log_std).")
class log_std_starts_at_0(Policy):
    def first_log_std(self, action_dim, log_std):
        return nn.Parameter(torch.zeros(action_dim))


@mistake("GaussianPolicy",
         nudge="Is every motor equally noisy for ever?",
         pointer="There is one log_std for all motors; each motor has its own.",
         answer="A parameter of shape (action_dim,).")
class one_log_std_for_all(Policy):
    def first_log_std(self, action_dim, log_std):
        return nn.Parameter(torch.full((1,), float(log_std)))


@mistake("GaussianPolicy",
         nudge="What does an untrained policy do on average?",
         pointer="The means of the untrained policy are large: the last layer's gain is not 0.01.",
         answer="self.mean = network(obs_dim, action_dim, last_gain=0.01).")
class large_last_layer(Policy):
    last_gain = 3.0


@mistake("GaussianPolicy",
         nudge="Call sample twice with the same observation. What should happen?",
         pointer="sample returns the mean: the policy never explores.",
         answer="mean + std * torch.randn_like(mean).")
class sample_without_noise(Policy):
    def noise(self, mean):
        return torch.zeros_like(mean)


@mistake("GaussianPolicy",
         nudge="Do hip and ankle get the same random number?",
         pointer="All motors get the same noise; the components are independent.",
         answer="torch.randn_like(mean): one number for each motor.")
class one_noise_for_all_motors(Policy):
    def noise(self, mean):
        return torch.randn_like(mean[..., :1]).expand_as(mean)


@mistake("GaussianPolicy",
         nudge="Which distribution does the noise come from?",
         pointer="The noise is uniform in [0, 1), not normal.",
         answer="torch.randn_like, not torch.rand_like.")
class uniform_noise(Policy):
    def noise(self, mean):
        return torch.rand_like(mean)


@mistake("GaussianPolicy",
         nudge="Whose density do you store: that of the drawn action, or of another one?",
         pointer="sample clips the action; clip it on its way to the robot, and keep what was drawn.",
         answer="Return mean + std * noise as it is.")
class sample_clipped(Policy):
    def sample(self, obs):
        return super().sample(obs).clamp(-1, 1)


@mistake("GaussianPolicy",
         nudge="Who needs gradients: acting or learning?",
         pointer="The sampled action carries a gradient graph: every step of the robot would be remembered.",
         answer="Sample under torch.no_grad().")
class sample_with_gradient(Policy):
    def sample(self, obs):
        mean = self.mean(obs)
        return mean + self.std() * torch.randn_like(mean)


@mistake("GaussianPolicy",
         nudge="Entropies of independent parts: what do you do with them?",
         pointer="entropy takes the mean over the motors; entropies of independent components add up.",
         answer="(...).sum().")
class entropy_averaged(Policy):
    def entropy(self):
        return (self.log_std + 0.5 * math.log(2 * math.pi * math.e)).mean()


@mistake("GaussianPolicy",
         nudge="Compare your entropy with the worked example: by how much are you off, for each motor?",
         pointer="The entropy of one motor is log(sigma) + log(2 pi e) / 2; the e is missing.",
         answer="0.5 * math.log(2 * math.pi * math.e) + log_std, summed.")
class entropy_without_e(Policy):
    def entropy(self):
        return (self.log_std + 0.5 * math.log(2 * math.pi)).sum()


@mistake("GaussianPolicy",
         nudge="How many motors count in your entropy's constant?",
         pointer="The constant log(2 pi e) / 2 is added once; it belongs to every motor.",
         answer="Add it before the sum: (log_std + 0.5 * log(2 pi e)).sum().")
class entropy_constant_once(Policy):
    def entropy(self):
        return self.log_std.sum() + 0.5 * math.log(2 * math.pi * math.e)


@mistake("GaussianPolicy",
         nudge="What should learn from log_prob?",
         pointer="log_prob carries no gradient: the policy cannot learn.",
         answer="no_grad and detach belong to sample, not to log_prob.")
class log_prob_detached(Policy):
    def log_prob(self, obs, actions):
        return super().log_prob(obs, actions).detach()
