"""Other right ways to write the pieces of 04_continuous_control, by {piece: [versions]}."""

import math
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn
from torch.distributions import Independent, Normal

# GaussianPolicy -------------------------------------------------------------------------------------------------------

class WithDistributions(nn.Module):
    def __init__(self, obs_dim, action_dim, log_std=-1.0):
        super().__init__()
        self.mean = nn.Sequential(nn.Linear(obs_dim, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, action_dim))
        nn.init.orthogonal_(self.mean[-1].weight, 0.01)
        nn.init.zeros_(self.mean[-1].bias)
        self.log_std = nn.Parameter(torch.ones(action_dim) * log_std)

    def distribution(self, obs):
        mean = self.mean(obs)
        return Normal(mean, self.log_std.exp().expand_as(mean))

    def forward(self, obs):
        return self.distribution(obs).mean

    def sample(self, obs):
        return self.distribution(obs).sample()

    def log_prob(self, obs, actions):
        return self.distribution(obs).log_prob(actions).sum(dim=-1)

    def entropy(self):
        return Normal(torch.zeros_like(self.log_std), self.log_std.exp()).entropy().sum()


class WithIndependent(WithDistributions):
    def distribution(self, obs):
        return Independent(Normal(self.mean(obs), torch.exp(self.log_std)), 1)

    def log_prob(self, obs, actions):
        return self.distribution(obs).log_prob(actions)

    @torch.inference_mode()
    def sample(self, obs):
        return self.distribution(obs).rsample()


class WithMultiply(WithDistributions):
    """Densities multiplied, noise drawn as one vector, the entropy from the covariance matrix."""

    def sample(self, obs):
        mean = self.mean(obs).detach()
        return torch.normal(mean, self.log_std.detach().exp().expand_as(mean))

    def log_prob(self, obs, actions):
        std = self.log_std.exp()
        square = (((actions - self.mean(obs)) / std) ** 2).sum(-1)
        return -0.5 * (square + 2 * self.log_std.sum() + len(std) * math.log(2 * math.pi))

    def entropy(self):
        return 0.5 * torch.logdet(2 * math.pi * math.e * torch.diag(self.log_std.exp() ** 2))


# RunningNorm, RewardScaler --------------------------------------------------------------------------------------------

class Sums:
    """Count, sum and sum of squares: exact enough in float64 for numbers of this size."""

    def __init__(self, shape, clip=10.0):
        self.clip, self.frozen, self.n = clip, False, 0
        self.s, self.q = torch.zeros(shape).double(), torch.zeros(shape).double()

    def update(self, batch):
        if not self.frozen:
            batch, self.n = batch.double(), self.n + len(batch)
            self.s, self.q = self.s + batch.sum(0), self.q + batch.square().sum(0)

    @property
    def mean(self):
        return self.s / max(self.n, 1)

    @property
    def var(self):
        return self.q / self.n - self.mean**2 if self.n else torch.ones_like(self.s)

    def __call__(self, x):
        return torch.clip((x.double() - self.mean) / torch.sqrt(self.var + 1e-8), -self.clip, self.clip).to(torch.float32)


class RowByRow(Sums):
    """Welford, one row at a time."""

    def __init__(self, shape, clip=10.0):
        super().__init__(shape, clip)
        self.m, self.m2 = torch.zeros(shape).double(), torch.zeros(shape).double()

    def update(self, batch):
        for row in () if self.frozen else batch.double():
            self.n += 1
            apart = row - self.m
            self.m = self.m + apart / self.n
            self.m2 = self.m2 + apart * (row - self.m)

    mean = property(lambda self: self.m)
    var = property(lambda self: self.m2 / self.n if self.n else torch.ones_like(self.m))


class InNumpy:
    """Everything seen is kept; statistics in numpy; std + 1e-8 for sqrt(var + 1e-8)."""

    def __init__(self, shape, clip=10.0):
        self.clip, self.frozen, self.seen = clip, False, []
        self.mean, self.var = np.zeros(shape), np.ones(shape)

    def update(self, batch):
        if not self.frozen:
            self.seen.append(batch.numpy().astype(np.float64))
            everything = np.concatenate(self.seen)
            self.mean, self.var = everything.mean(0), everything.var(0)

    def __call__(self, x):
        return torch.from_numpy(np.clip((x.numpy() - self.mean) / (np.sqrt(self.var) + 1e-8), -self.clip, self.clip)).float()


class ScalerOfSums:
    def __init__(self, num_envs, gamma, clip=10.0):
        self.gamma, self.clip, self.R, self.norm = gamma, clip, None, Sums(())

    def __call__(self, rewards, ended):
        self.R = rewards if self.R is None else rewards + self.gamma * self.R
        self.norm.update(self.R)
        self.R = torch.where(ended, 0.0, self.R)
        return torch.clip(rewards / torch.sqrt(self.norm.var + 1e-8), -self.clip, self.clip).float()


class ScalerInPlace:
    """Restarts at the next step instead of at the end of this one; changes its buffers in place."""

    def __init__(self, num_envs, gamma, clip=10.0):
        self.gamma, self.clip, self.norm = gamma, clip, RowByRow(())
        self.R, self.fresh = torch.zeros(num_envs, dtype=torch.float64), torch.ones(num_envs, dtype=torch.bool)

    def __call__(self, rewards, ended):
        self.R[self.fresh] = 0.0
        self.R.mul_(self.gamma).add_(rewards)
        self.norm.update(self.R)
        self.fresh = ended.clone()
        return (rewards / self.norm.var.add(1e-8).sqrt()).clamp(min=-self.clip, max=self.clip).to(torch.float32)


# bootstrap_truncations, gae -------------------------------------------------------------------------------------------

def bootstrap_by_index(values, last_values, truncated, final_values):
    next_values = torch.empty_like(values)
    next_values[:-1], next_values[-1] = values[1:], last_values
    next_values[truncated] = final_values[truncated]
    return next_values


def bootstrap_with_a_loop(values, last_values, truncated, final_values):
    T, N = values.shape
    rows = [[final_values[t, n] if truncated[t, n] else values[t + 1, n] if t + 1 < T else last_values[n]
             for n in range(N)] for t in range(T)]
    return torch.tensor(rows)


def bootstrap_with_a_mask(values, last_values, truncated, final_values):
    cut = truncated.float()
    return (1 - cut) * torch.vstack([values, last_values.unsqueeze(0)])[1:] + cut * final_values


def gae_double_sum(rewards, values, next_values, terminated, truncated, gamma, lam):
    """The definition, in float64: the sum over all later TD errors of the same episode."""
    r, v, n = rewards.double(), values.double(), next_values.double()
    T, N = r.shape
    advantages = torch.zeros(T, N, dtype=torch.float64)
    for i in range(N):
        for t in range(T):
            for k in range(t, T):
                delta = r[k, i] + (0.0 if terminated[k, i] else gamma * n[k, i]) - v[k, i]
                advantages[t, i] += (gamma * lam) ** (k - t) * delta
                if terminated[k, i] or truncated[k, i]:
                    break
    return advantages.float(), (advantages + v).float()


def gae_by_lambda_returns(rewards, values, next_values, terminated, truncated, gamma, lam):
    alive, on = 1.0 - terminated.float(), 1.0 - torch.logical_or(terminated, truncated).float()
    G, out = next_values[-1], []
    for t in range(len(rewards) - 1, -1, -1):
        follow = next_values[t] if t == len(rewards) - 1 else on[t] * ((1 - lam) * next_values[t] + lam * G) \
            + (1 - on[t]) * next_values[t]
        G = rewards[t] + gamma * alive[t] * follow
        out.append(G)
    returns = torch.stack(out[::-1])
    return returns - values, returns


def gae_in_numpy(rewards, values, next_values, terminated, truncated, gamma, lam):
    r, v, n, d, c = (x.numpy().astype(np.float64) for x in (rewards, values, next_values, terminated, truncated))
    out, later = np.zeros_like(r), 0.0
    for t in reversed(range(len(r))):
        later = r[t] + gamma * n[t] * (1 - d[t]) - v[t] + gamma * lam * (1 - np.maximum(d[t], c[t])) * later
        out[t] = later
    return [torch.tensor(out, dtype=torch.float32), torch.tensor(out + v, dtype=torch.float32)]


# ppo_update -----------------------------------------------------------------------------------------------------------

def _rate(optimizer, kl, target):
    if target is None:
        return
    for group in optimizer.param_groups:
        factor = 1 / 1.5 if kl > 2 * target else 1.5 if kl < 0.5 * target else 1.0
        group["lr"] = float(np.clip(group["lr"] * factor, 1e-5, 1e-2)) if factor != 1.0 else group["lr"]


def update_in_numpy_order(policy, critic, optimizer, batch, settings, adapt=True):
    """Two backward passes, population std, numpy's shuffle, sums divided by hand."""
    B, kls, fractions = len(batch.obs), [], []
    for _ in range(settings.epochs):
        order, mine = np.random.permutation(B), []
        for start in range(0, B, settings.minibatch_size):
            rows = torch.from_numpy(order[start:start + settings.minibatch_size])
            A = batch.advantages[rows]
            A = (A - A.mean()) / (A.std(correction=0) + 1e-8)
            new = policy.log_prob(batch.obs[rows], batch.actions[rows])
            rho = torch.exp(new - batch.log_probs[rows])
            low, high = 1 - settings.clip, 1 + settings.clip
            losses = torch.max(-A * rho, -A * torch.clamp(rho, low, high))
            for p in (*policy.parameters(), *critic.parameters()):
                p.grad = None
            (losses.sum() / len(rows) - settings.entropy_coef * policy.entropy()).backward()
            (settings.value_coef * (critic(batch.obs[rows]) - batch.returns[rows]).pow(2).mean()).backward()
            nn.utils.clip_grad_norm_(list(policy.parameters()) + list(critic.parameters()), settings.max_grad_norm)
            optimizer.step()
            rho = rho.detach()
            mine.append(float((rho - 1 - rho.log()).mean()))
            fractions.append(float(((rho < low) | (rho > high)).double().mean()))
        kls += mine
        if adapt:
            _rate(optimizer, np.mean(mine), settings.target_kl)
    return {"kl": float(np.mean(kls)), "clipfrac": float(np.mean(fractions)), "epochs": settings.epochs}


def update_without_the_extension(*arguments):
    return update_in_numpy_order(*arguments, adapt=False)


def update_with_where(policy, critic, optimizer, batch, settings):
    """The bound written as a condition; the KL and the clip share from what is left afterwards."""
    sums, count = np.zeros(2), 0
    for _ in range(settings.epochs):
        seen = []
        for rows in torch.split(torch.randperm(len(batch.obs)), settings.minibatch_size):
            A = batch.advantages[rows]
            A = (A - A.mean()) / (A.std(unbiased=True) + 1e-8)
            log_ratio = policy.log_prob(batch.obs[rows], batch.actions[rows]) - batch.log_probs[rows]
            ratio = log_ratio.exp()
            best = torch.where(A > 0, ratio.clamp(max=1 + settings.clip), ratio.clamp(min=1 - settings.clip))
            error = nn.functional.mse_loss(critic(batch.obs[rows]), batch.returns[rows])
            loss = -(best * A).mean() + error * settings.value_coef - settings.entropy_coef * policy.entropy()
            optimizer.zero_grad(set_to_none=False)
            loss.backward()
            torch.nn.utils.clip_grad_norm_((p for m in (policy, critic) for p in m.parameters()), settings.max_grad_norm)
            optimizer.step()
            seen.append((torch.expm1(log_ratio) - log_ratio).mean().item())
            sums += seen[-1], ((ratio - 1).abs() > settings.clip).double().mean().item()
            count += 1
        _rate(optimizer, sum(seen) / len(seen), settings.target_kl)
    return dict(zip(("kl", "clipfrac"), (sums / count).tolist()))


# collect --------------------------------------------------------------------------------------------------------------

def collect_with_lists(envs, policy, norm, scale, obs, num_steps):
    space, rows, finished = envs.single_action_space, [], []
    for _ in range(num_steps):
        norm.update(obs)
        seen = norm(obs)
        action = policy.sample(seen)
        limited = np.minimum(np.maximum(action.numpy(), space.low), space.high)
        raw, r, d, c, info = envs.step(limited)
        last = torch.zeros_like(seen)
        if c.any():
            last[torch.from_numpy(c)] = norm(torch.as_tensor(np.stack(info["final_obs"][c])))
        finished.extend(float(x) for x, done in zip(info["episode"]["r"], d | c) if done) if (d | c).any() else None
        d, c = torch.as_tensor(d), torch.as_tensor(c)
        rows.append((seen, action, scale(torch.as_tensor(r), d | c), d, c, last))
        obs = torch.as_tensor(raw)
    names = ("obs", "actions", "rewards", "terminated", "truncated", "final_obs")
    stacks = {name: torch.stack(column) for name, column in zip(names, zip(*rows))}
    return SimpleNamespace(**stacks, next_obs=norm(obs), episode_returns=finished), obs


def collect_all_final_observations(envs, policy, norm, scale, obs, num_steps):
    """Final observations of terminated episodes too, float flags, nan where there are none."""
    rollout, obs = collect_with_lists(envs, policy, norm, scale, obs, num_steps)
    rollout.final_obs = torch.where(rollout.truncated[..., None], rollout.final_obs, torch.nan)
    rollout.terminated, rollout.truncated = rollout.terminated.float(), rollout.truncated.float()
    return rollout, obs


ALTERNATIVES = {
    "GaussianPolicy": [WithDistributions, WithIndependent, WithMultiply],
    "RunningNorm": [Sums, RowByRow, InNumpy],
    "RewardScaler": [ScalerOfSums, ScalerInPlace],
    "bootstrap_truncations": [bootstrap_by_index, bootstrap_with_a_loop, bootstrap_with_a_mask],
    "gae": [gae_double_sum, gae_by_lambda_returns, gae_in_numpy],
    "ppo_update": [update_in_numpy_order, update_without_the_extension, update_with_where],
    "collect": [collect_with_lists, collect_all_final_observations],
}
