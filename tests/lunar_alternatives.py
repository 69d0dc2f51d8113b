"""Other right ways to write the pieces of 02_lunar_lander, and the slow definition of the advantages."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def slow_advantages(inputs):
    """Schulman et al. 2016, eq. 16, as it stands: A_t = sum_k (gamma lambda)^k delta_{t+k}, in float64, row by row."""
    T, gamma, lam = inputs["num_steps"], inputs["gamma"], inputs["lmbda"]
    V, next_V = ((inputs[name].double() @ inputs["critic_weight"].double().T)[:, 0] for name in ("states", "next_states"))
    terminated = inputs["terminations"].bool()
    truncated = inputs.get("truncations", torch.zeros(len(V))).bool()
    advantages = []
    for row in range(len(V)):
        total = 0.0
        for k in range(T - row % T):
            i = row + k
            total += (gamma * lam) ** k * float(inputs["rewards"][i] + gamma * next_V[i] * (not terminated[i]) - V[i])
            if terminated[i] or truncated[i]:
                break
        advantages.append(total)
    return torch.tensor(advantages, dtype=torch.float64), V


def numpy_loop(self, states, rewards, next_states, terminations, truncations=None):
    T = self.num_steps
    with torch.no_grad():
        v = self.critic(states)[:, 0].numpy().reshape(-1, T)
        nv = self.critic(next_states)[:, 0].numpy().reshape(-1, T)
    r, d = rewards.numpy().reshape(-1, T), terminations.numpy().reshape(-1, T)
    u = np.zeros_like(d) if truncations is None else truncations.numpy().reshape(-1, T)
    out, last = np.zeros_like(v), np.zeros(len(v), dtype=np.float32)
    for t in range(T - 1, -1, -1):
        last = r[:, t] + self.gamma * nv[:, t] * (1 - d[:, t]) - v[:, t] \
            + self.gamma * self.lmbda * (1 - d[:, t]) * (1 - u[:, t]) * last
        out[:, t] = last
    return torch.tensor(out.ravel()), torch.tensor((out + v).ravel())


def float64_inside(self, states, rewards, next_states, terminations, truncations=None):
    advantages, targets = double_sum(self, states, rewards, next_states, terminations, truncations)
    return advantages.float(), targets.float()


def double_sum(self, states, rewards, next_states, terminations, truncations=None):
    """The definition with two loops."""
    inputs = {"states": states, "rewards": rewards, "next_states": next_states, "terminations": terminations,
              "num_steps": self.num_steps, "gamma": self.gamma, "lmbda": self.lmbda,
              "critic_weight": self.critic[0].weight.detach()}
    if truncations is not None:
        inputs["truncations"] = truncations
    advantages, v = slow_advantages(inputs)
    return advantages, advantages + v


def environment_by_environment(self, states, rewards, next_states, terminations, truncations=None):
    if truncations is None:
        truncations = torch.zeros_like(terminations)
    ended = torch.maximum(terminations, truncations)
    v, nv = self.compute_values(states).detach(), self.compute_values(next_states).detach()
    advantages = [None] * len(states)
    for start in range(0, len(states), self.num_steps):
        later = 0.0
        for i in range(start + self.num_steps - 1, start - 1, -1):
            delta = rewards[i] + (1 - terminations[i]) * self.gamma * nv[i] - v[i]
            later = delta + (1 - ended[i]) * self.gamma * self.lmbda * later
            advantages[i] = later
    advantages = torch.stack(advantages)
    return advantages, advantages + v


def one_flat_loop(self, states, rewards, next_states, terminations, truncations=None):
    """A single pass over all rows that stops the sum at the last row of each environment."""
    T = self.num_steps
    with torch.no_grad():
        v, nv = self.critic(states).flatten(), self.critic(next_states).flatten()
    stop = terminations.clone()
    if truncations is not None:
        stop = stop + truncations - stop * truncations
    stop[T - 1::T] = 1
    advantages = rewards + self.gamma * nv * (1 - terminations) - v
    for i in range(len(states) - 2, -1, -1):
        advantages[i] += self.gamma * self.lmbda * (1 - stop[i]) * advantages[i + 1]
    return advantages, advantages + v


def matrix_product(self, states, rewards, next_states, terminations, truncations=None):
    """No loop over t: a triangular matrix of weights, zero across ends."""
    T = self.num_steps
    with torch.no_grad():
        v, nv = self.critic(states).view(-1, T), self.critic(next_states).view(-1, T)
    d = terminations.view(-1, T)
    e = d if truncations is None else torch.maximum(d, truncations.view(-1, T))
    delta = rewards.view(-1, T) + self.gamma * nv * (1 - d) - v
    ends_before = torch.cumsum(e, 1) - e
    same = (ends_before[:, :, None] == ends_before[:, None, :]).float()
    k = torch.arange(T)
    power = torch.triu((self.gamma * self.lmbda + 0.0) ** (k[None, :] - k[:, None]).clamp(min=0).float())
    advantages = torch.einsum("nij,nj->ni", same * power, delta)
    return advantages.flatten(), (advantages + v).flatten()


def time_major_inside(self, states, rewards, next_states, terminations, truncations=None):
    T = self.num_steps

    def rows(x):
        return x.reshape(-1, T).transpose(0, 1)
    v, nv = (rows(self.compute_values(x).detach()) for x in (states, next_states))
    mask = 1 - rows(terminations)
    cut = mask if truncations is None else mask * (1 - rows(truncations))
    deltas, out, later = rows(rewards) + self.gamma * nv * mask - v, [], torch.zeros(v.shape[1])
    for delta, keep in zip(deltas.flip(0), cut.flip(0)):
        later = delta + self.gamma * self.lmbda * keep * later
        out.insert(0, later)
    out = torch.stack(out)
    return out.transpose(0, 1).reshape(-1), (out + v).transpose(0, 1).reshape(-1)


def returns_first(self, states, rewards, next_states, terminations, truncations=None):
    """The lambda-return recursion; advantages are what is left after the values."""
    T = self.num_steps
    with torch.no_grad():
        v, nv = self.critic(states).reshape(-1, T), self.critic(next_states).reshape(-1, T)
    d = terminations.reshape(-1, T)
    e = d if truncations is None else ((d + truncations.reshape(-1, T)) > 0).float()
    G = torch.zeros_like(v)
    for t in reversed(range(T)):
        follow = nv[:, t] if t == T - 1 else torch.where(
            e[:, t] > 0, nv[:, t], (1 - self.lmbda) * nv[:, t] + self.lmbda * G[:, t + 1])
        G[:, t] = rewards.reshape(-1, T)[:, t] + self.gamma * (1 - d[:, t]) * follow
    return (G - v).reshape(-1), G.reshape(-1)


def no_truncations(self, states, rewards, next_states, terminations):
    return numpy_loop(self, states, rewards, next_states, terminations)


def detached_at_the_end(self, *batch):
    v = self.critic(batch[0]).squeeze(-1)
    advantages, _ = numpy_loop(self, *batch)
    return advantages.detach(), (advantages + v).detach()


def bools_only(self, states, rewards, next_states, terminations, truncations=None):
    ended = terminations if truncations is None else terminations | truncations
    advantages, targets = numpy_loop(self, states, rewards, next_states, (~~terminations).float(), ended.float())
    return advantages, targets


def returns_a_list(self, *batch):
    return list(one_flat_loop(self, *batch))


ADVANTAGES = [numpy_loop, float64_inside, environment_by_environment, one_flat_loop, matrix_product, time_major_inside,
              returns_first, no_truncations, detached_at_the_end, bools_only, returns_a_list]


def with_where(self, states, actions, advantages, critic_targets, log_probs_old):
    ratio = (self.compute_log_probs(states, actions) - log_probs_old).exp()
    bound = torch.where(advantages > 0, (1 + self.epsilon) * advantages, (1 - self.epsilon) * advantages)
    objective = torch.where(ratio * advantages < bound, ratio * advantages, bound)
    return -objective.mean(), (self.compute_values(states) - critic_targets).pow(2).mean()


def with_max_of_losses(self, states, actions, advantages, critic_targets, log_probs_old):
    ratio = torch.exp(self.compute_log_probs(states, actions) - log_probs_old)
    unclipped, clipped = -advantages * ratio, -advantages * torch.clamp(ratio, 1 - self.epsilon, 1 + self.epsilon)
    return torch.max(unclipped, clipped).mean(), nn.MSELoss()(self.critic(states).squeeze(), critic_targets)


def with_distribution(self, states, actions, advantages, critic_targets, log_probs_old):
    log_probs = torch.distributions.Categorical(logits=self.actor(states)).log_prob(actions)
    ratio = log_probs.exp() / log_probs_old.exp()
    pairs = torch.stack([ratio * advantages, ratio.clip(1 - self.epsilon, 1 + self.epsilon) * advantages])
    return -pairs.min(dim=0).values.mean(), F.mse_loss(self.critic(states).flatten(), critic_targets.detach())


def with_float64_losses(self, states, actions, advantages, critic_targets, log_probs_old):
    log_probs = F.log_softmax(self.actor(states).double(), -1)[range(len(actions)), actions]
    ratio = torch.exp(log_probs - log_probs_old.double())
    objective = torch.min(ratio * advantages, ratio.clamp(1 - self.epsilon, 1 + self.epsilon) * advantages)
    error = ((self.critic(states).squeeze(-1).double() - critic_targets) ** 2).mean()
    return -objective.mean().float(), error.float()


def with_cross_entropy(self, states, actions, advantages, critic_targets, log_probs_old):
    ratio = torch.exp(-F.cross_entropy(self.actor(states), actions, reduction="none") - log_probs_old)
    objective = torch.minimum(ratio * advantages, torch.clamp(ratio, 1 - self.epsilon, 1 + self.epsilon) * advantages)
    return objective.sum() / -len(states), torch.mean(torch.square(critic_targets - self.compute_values(states)))


def with_a_loop(self, states, actions, advantages, critic_targets, log_probs_old):
    total = 0.0
    for i in range(len(states)):
        ratio = torch.exp(self.compute_log_probs(states[i:i + 1], actions[i:i + 1])[0] - log_probs_old[i])
        total = total + torch.min(ratio * advantages[i], ratio.clamp(1 - self.epsilon, 1 + self.epsilon) * advantages[i])
    return -total / len(states), F.mse_loss(self.compute_values(states), critic_targets)


def with_one_hot(self, states, actions, advantages, critic_targets, log_probs_old):
    chosen = F.one_hot(actions, self.actor(states).shape[-1])
    ratio = torch.exp((torch.log_softmax(self.actor(states), 1) * chosen).sum(1) - log_probs_old)
    objective = torch.where(advantages >= 0, torch.clamp(ratio, max=1 + self.epsilon),
                            torch.clamp(ratio, min=1 - self.epsilon)) * advantages
    return -torch.mean(objective), (self.critic(states) - critic_targets[:, None]).square().mean()


LOSSES = [with_where, with_max_of_losses, with_distribution, with_float64_losses, with_cross_entropy, with_a_loop,
          with_one_hot]
