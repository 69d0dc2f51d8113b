"""Right versions of the pieces of 03_ppo_details, each written in another way than the solution.

ALTERNATIVES[piece] is a list of objects that the check of that piece must accept. They differ in algorithm, in layout, in
the types they return, and in conventions that the field leaves open.
"""

import math
import random
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical
from torch.nn import functional as F

ALTERNATIVES = {}


def right(piece):
    """Decorator: registers a right version of `piece`."""
    def register(version):
        ALTERNATIVES.setdefault(piece, []).append(version)
        return version
    return register


# Agent ----------------------------------------------------------------------------------------------------------------

def orthogonal(layer, gain):
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


@right("agent_init")
class FlattenFirst(nn.Module):
    def __init__(self, envs):
        super().__init__()
        size = math.prod(envs.single_observation_space.shape)
        self.critic = nn.Sequential(nn.Flatten(), *_hidden(size), orthogonal(nn.Linear(64, 1), 1.0))
        self.actor = nn.Sequential(nn.Flatten(), *_hidden(size), orthogonal(nn.Linear(64, envs.single_action_space.n), 0.01))


def _hidden(size):
    return [orthogonal(nn.Linear(size, 64), math.sqrt(2)), nn.Tanh(), orthogonal(nn.Linear(64, 64), math.sqrt(2)), nn.Tanh()]


@right("agent_init")
class NestedSequential(nn.Module):
    def __init__(self, envs):
        super().__init__()
        size = envs.single_observation_space.shape[0]
        self.actor = nn.Sequential(nn.Sequential(*_hidden(size)), orthogonal(nn.Linear(64, envs.single_action_space.n), 0.01))
        self.critic = nn.Sequential(nn.Sequential(*_hidden(size)), nn.Sequential(orthogonal(nn.Linear(64, 1), 1)))


@right("agent_init")
class BuiltInALoop(nn.Module):
    """Extra methods and an extra attribute; layers initialised afterwards."""

    def __init__(self, envs):
        super().__init__()
        sizes = [int(np.array(envs.single_observation_space.shape).prod()), 64, 64]
        self.num_actions = int(envs.single_action_space.n)
        self.actor = self.build([*sizes, self.num_actions], 0.01)
        self.critic = self.build([*sizes, 1], 1.0)

    def build(self, sizes, last):
        layers = []
        for i in range(3):
            layers.append(nn.Linear(sizes[i], sizes[i + 1]))
            torch.nn.init.orthogonal_(layers[-1].weight, last if i == 2 else 2**0.5)
            layers[-1].bias.data.fill_(0.0)
            if i < 2:
                layers.append(nn.Tanh())
        return nn.Sequential(*layers)

    def get_value(self, x):
        return self.critic(x)


class Net(nn.Module):
    """A network as a module of its own, with torch.tanh and not nn.Tanh."""

    def __init__(self, size_in, size_out, gain):
        super().__init__()
        self.first, self.second = orthogonal(nn.Linear(size_in, 64), 2**0.5), orthogonal(nn.Linear(64, 64), 2**0.5)
        self.last = orthogonal(nn.Linear(64, size_out), gain)

    def forward(self, x):
        return self.last(torch.tanh(self.second(torch.tanh(self.first(x)))))


@right("agent_init")
class OwnModules(nn.Module):
    def __init__(self, envs):
        super().__init__()
        size = envs.single_observation_space.shape[0]
        self.actor, self.critic = Net(size, envs.single_action_space.n, 0.01), Net(size, 1, 1.0)


@right("continuous_agent_init")
class LogStdWithARow(nn.Module):
    def __init__(self, envs):
        super().__init__()
        size, actions = envs.single_observation_space.shape[0], envs.single_action_space.shape[0]
        self.log_std = nn.Parameter(torch.zeros(1, actions))
        self.actor, self.critic = Net(size, actions, 0.01), Net(size, 1, 1.0)


# Advantages -----------------------------------------------------------------------------------------------------------

def _following(next_value, next_done, values, dones):
    return torch.cat([values[1:], next_value]), 1 - torch.cat([dones[1:], next_done[None]])


@right("compute_advantages")
def branches_at_the_last_step(next_value, next_done, rewards, values, dones, device, gamma, gae_lambda):
    T = rewards.shape[0]
    advantages = torch.zeros_like(rewards).to(device)
    last = 0
    for t in reversed(range(T)):
        if t == T - 1:
            nonterminal, following = 1.0 - next_done, next_value
        else:
            nonterminal, following = 1.0 - dones[t + 1], values[t + 1]
        delta = rewards[t] + gamma * following * nonterminal - values[t]
        advantages[t] = last = delta + gamma * gae_lambda * nonterminal * last
    return advantages


@right("compute_advantages")
def list_turned_round(next_value, next_done, rewards, values, dones, device, gamma, gae_lambda):
    following, goes_on = _following(next_value, next_done, values, dones)
    found, carried = [], torch.zeros_like(next_done)
    for r, v, w, m in zip(*(reversed(x.unbind()) for x in (rewards, values, following, goes_on))):
        carried = r - v + gamma * m * (w + gae_lambda * carried)
        found.append(carried)
    return torch.stack(found[::-1])


@right("compute_advantages")
def in_float64_by_environment(next_value, next_done, rewards, values, dones, device, gamma, gae_lambda):
    following, goes_on = _following(next_value, next_done, values, dones)
    columns = [x.double().numpy() for x in (rewards, values, following, goes_on)]
    out = np.zeros(columns[0].shape)
    for n in range(out.shape[1]):
        carried = 0.0
        for t in range(len(out) - 1, -1, -1):
            r, v, w, m = (column[t, n] for column in columns)
            carried = r + gamma * w * m - v + gamma * gae_lambda * m * carried
            out[t, n] = carried
    return torch.from_numpy(out).float().to(device)


@right("compute_advantages")
def from_the_definition(next_value, next_done, rewards, values, dones, device, gamma, gae_lambda):
    """The sum itself, forwards, as in the paper: quadratic in T."""
    following, goes_on = _following(next_value, next_done, values, dones)
    deltas = rewards + gamma * following * goes_on - values
    advantages = torch.zeros_like(rewards)
    for t in range(len(rewards)):
        weight = torch.ones_like(next_done)
        for k in range(t, len(rewards)):
            advantages[t] += weight * deltas[k]
            weight = weight * gamma * gae_lambda * goes_on[k]
    return advantages


@right("compute_advantages")
def mixture_of_n_step_returns(next_value, next_done, rewards, values, dones, device, gamma, gae_lambda):
    """lambda-returns minus V: another recursion with the same result."""
    following, goes_on = _following(next_value, next_done, values, dones)
    target, targets = following[-1], []
    for t in reversed(range(len(rewards))):
        target = rewards[t] + gamma * goes_on[t] * ((1 - gae_lambda) * following[t] + gae_lambda * target)
        targets.insert(0, target)
    return torch.stack(targets) - values


@right("compute_advantages")
def masks_with_where(next_value, next_done, rewards, values, dones, device, gamma, gae_lambda):
    ended = torch.cat((dones, next_done.unsqueeze(0)))[1:].bool()
    padded = torch.cat((values, next_value))
    with torch.no_grad():
        deltas = rewards + gamma * torch.where(ended, torch.zeros_like(values), padded[1:]) - padded[:-1]
        carried = torch.zeros(rewards.shape[1], device=device)
        advantages = torch.empty_like(deltas)
        for t in range(len(deltas) - 1, -1, -1):
            carried = deltas[t] + gamma * gae_lambda * carried.masked_fill(ended[t], 0.0)
            advantages[t] = carried
    return advantages


@right("compute_advantages_without_loop")
def by_doubling(next_value, next_done, rewards, values, dones, device, gamma, gae_lambda):
    """Each round joins twice as many steps: log2(T) rounds."""
    following, goes_on = _following(next_value, next_done, values, dones)
    total, factor = rewards + gamma * following * goes_on - values, gamma * gae_lambda * goes_on
    reach = 1
    while reach < len(rewards):
        rest = torch.zeros_like(total[:reach])
        total, factor = (total + factor * torch.cat([total[reach:], rest]), factor * torch.cat([factor[reach:], rest]))
        reach *= 2
    return total


# Minibatches ----------------------------------------------------------------------------------------------------------

@right("minibatch_indexes")
def slices_of_a_permutation(batch_size, minibatch_size):
    order = np.random.permutation(batch_size)
    return [order[i:i + minibatch_size] for i in range(0, batch_size, minibatch_size)]


@right("minibatch_indexes")
def reshaped(batch_size, minibatch_size):
    assert batch_size % minibatch_size == 0
    return list(np.random.default_rng().permutation(batch_size).reshape(-1, minibatch_size))


@right("minibatch_indexes")
def lists_of_ints(batch_size, minibatch_size):
    order = list(range(batch_size))
    random.shuffle(order)
    return [order[i:i + minibatch_size] for i in range(0, batch_size, minibatch_size)]


@right("minibatch_indexes")
def sorted_inside(batch_size, minibatch_size):
    """Which rows share a minibatch is random; their order inside does not matter."""
    return [part.sort().values for part in torch.randperm(batch_size).split(minibatch_size)]


@right("minibatch_indexes")
def one_matrix(batch_size, minibatch_size):
    return torch.randperm(batch_size).reshape(-1, minibatch_size)


@right("minibatch_indexes")
def by_sorting_noise(batch_size, minibatch_size):
    return torch.rand(batch_size).argsort().chunk(batch_size // minibatch_size) if batch_size % minibatch_size == 0 else \
        tuple(torch.rand(batch_size).argsort().split(minibatch_size))


def minibatch_indexes(batch_size, minibatch_size):
    return slices_of_a_permutation(batch_size, minibatch_size)


@right("make_minibatches")
def with_own_minibatch_indexes(obs, logprobs, actions, advantages, values, obs_shape, action_shape, batch_size, minibatch_size):
    out = []
    for rows in minibatch_indexes(batch_size, minibatch_size):
        rows = torch.from_numpy(rows)  # only numpy arrays would do here
        a, v = advantages.flatten()[rows], values.flatten()[rows]
        out.append(SimpleNamespace(obs=obs.flatten(0, 1)[rows], logprobs=logprobs.flatten()[rows], advantages=a,
                                   actions=actions.reshape((-1, *action_shape))[rows], returns=a + v, values=v))
    return out


@right("make_minibatches")
def shuffled_first_then_cut(obs, logprobs, actions, advantages, values, obs_shape, action_shape, batch_size, minibatch_size):
    order = torch.randperm(batch_size)
    columns = {"obs": obs.reshape((-1, *obs_shape)), "logprobs": logprobs.reshape(-1), "advantages": advantages.reshape(-1),
               "actions": actions.reshape((-1, *action_shape)), "values": values.reshape(-1),
               "returns": (advantages + values).reshape(-1)}
    cut = {name: column[order].split(minibatch_size) for name, column in columns.items()}
    return [SimpleNamespace(**{name: parts[i] for name, parts in cut.items()}) for i in range(batch_size // minibatch_size)]


@right("make_minibatches")
def environment_by_environment(obs, logprobs, actions, advantages, values, obs_shape, action_shape, batch_size, minibatch_size):
    """Another flat order, the same for all fields."""
    flat = [x.transpose(0, 1).reshape(batch_size, *x.shape[2:]) for x in (obs, logprobs, actions, advantages, values)]
    out = []
    for rows in np.random.permutation(batch_size).reshape(-1, minibatch_size):
        o, lp, a, adv, v = (x[rows] for x in flat)
        out.append(SimpleNamespace(obs=o, logprobs=lp, actions=a, advantages=adv, returns=adv + v, values=v))
    return out


# Losses ---------------------------------------------------------------------------------------------------------------

def _objective(ratio, advantages, eps):
    return torch.minimum(ratio * advantages, torch.clip(ratio, 1 - eps, 1 + eps) * advantages)


@right("calc_policy_loss")
def population_std(probs, mb_action, mb_advantages, mb_logprobs, clip_coef):
    advantages = (mb_advantages - mb_advantages.mean()) / (mb_advantages.std(unbiased=False) + 1e-8)
    return -_objective(torch.exp(probs.log_prob(mb_action) - mb_logprobs), advantages, clip_coef).mean()


@right("calc_policy_loss")
def larger_of_two_losses(probs, mb_action, mb_advantages, mb_logprobs, clip_coef):
    ratio = torch.exp(probs.log_prob(mb_action) - mb_logprobs)
    advantages = (mb_advantages - mb_advantages.mean()) / (mb_advantages.std() + 1e-6)
    return torch.max(-advantages * ratio, -advantages * torch.clamp(ratio, 1 - clip_coef, 1 + clip_coef)).mean()


@right("calc_policy_loss")
def branch_on_the_sign(probs, mb_action, mb_advantages, mb_logprobs, clip_coef):
    ratio = (probs.log_prob(mb_action) - mb_logprobs).exp()
    std, mean = torch.std_mean(mb_advantages)
    a = (mb_advantages - mean) / (std + 1e-8)
    rows = torch.where(a >= 0, ratio.clamp(max=1 + clip_coef) * a, ratio.clamp(min=1 - clip_coef) * a)
    return -rows.sum() / len(rows)


@right("calc_policy_loss")
def from_logits(probs, mb_action, mb_advantages, mb_logprobs, clip_coef):
    logprobs = F.log_softmax(probs.logits, dim=1).gather(1, mb_action.long().view(-1, 1)).view(-1)
    a = (mb_advantages - mb_advantages.mean()) / (mb_advantages.std() + 1e-5)
    return torch.neg(_objective(torch.exp(logprobs - mb_logprobs.detach()), a.detach(), clip_coef)).mean()


@right("calc_policy_loss")
def ratio_of_probabilities(probs, mb_action, mb_advantages, mb_logprobs, clip_coef):
    ratio = probs.probs.gather(1, mb_action[:, None])[:, 0] / mb_logprobs.exp()
    a = (mb_advantages - mb_advantages.mean()) / torch.clamp(mb_advantages.std(), min=1e-8)
    return -_objective(ratio, a, clip_coef).mean()


@right("calc_policy_loss")
def layer_norm(probs, mb_action, mb_advantages, mb_logprobs, clip_coef):
    a = F.layer_norm(mb_advantages, mb_advantages.shape)
    return -_objective((probs.log_prob(mb_action) - mb_logprobs).exp(), a, clip_coef).mean()


@right("calc_value_function_loss")
def mse_loss(critic, mb_obs, mb_returns, v_coef):
    return v_coef * F.mse_loss(critic(mb_obs).flatten(), mb_returns) / 2


@right("calc_value_function_loss")
def returns_as_a_column(critic, mb_obs, mb_returns, v_coef):
    return 0.5 * v_coef * torch.mean((mb_returns.unsqueeze(1) - critic(mb_obs)) ** 2)


@right("calc_value_function_loss")
def sum_over_length(critic, mb_obs, mb_returns, v_coef):
    error = critic(mb_obs)[:, 0] - mb_returns.detach()
    return v_coef * (error @ error) / (2 * len(error))


@right("calc_entropy_loss")
def by_hand(probs, ent_coef):
    return ent_coef * (probs.probs * probs.logits).sum(-1).mean()


@right("calc_entropy_loss")
def negated_mean(probs, ent_coef):
    return ent_coef * (-probs.entropy()).mean()


@right("calc_entropy_loss")
def of_log_softmax(probs, ent_coef):
    logs = torch.log_softmax(probs.logits, dim=-1)
    return ent_coef * torch.einsum("ba,ba->b", logs.exp(), logs).mean()


# Scheduler and optimizer ----------------------------------------------------------------------------------------------

@right("ppo_scheduler")
class LambdaLRInside:
    def __init__(self, optimizer, initial_lr, end_lr, num_updates):
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"] = 1.0  # the lambda gives the learning rate itself
        self.inner = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda k: initial_lr + (end_lr - initial_lr) * min(k / num_updates, 1.0))

    def step(self):
        self.inner.step()


@right("ppo_scheduler")
class LinearLRInside:
    def __init__(self, optimizer, initial_lr, end_lr, num_updates):
        for group in optimizer.param_groups:
            group["lr"] = initial_lr
        self.inner = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, max(end_lr, 1e-12) / initial_lr, num_updates) \
            if end_lr <= initial_lr else None
        self.optimizer, self.step_size, self.end = optimizer, (end_lr - initial_lr) / num_updates, end_lr

    def step(self):
        if self.inner:
            return self.inner.step()
        for group in self.optimizer.param_groups:
            group["lr"] = min(group["lr"] + self.step_size, self.end)


@right("ppo_scheduler")
class PreparedTable:
    def __init__(self, optimizer, initial_lr, end_lr, num_updates):
        self.optimizer = optimizer
        self.rest = list(np.linspace(initial_lr, end_lr, num_updates + 1))[1:]
        self.end = end_lr

    def step(self):
        lr = float(self.rest.pop(0)) if self.rest else self.end
        for group in self.optimizer.param_groups:
            group.update(lr=lr)


@right("ppo_scheduler")
class CountsDown:
    """Sets the first learning rate in __init__ too."""

    def __init__(self, optimizer, initial_lr, end_lr, num_updates):
        self.optimizer, self.left, self.total, self.a, self.b = optimizer, num_updates, num_updates, initial_lr, end_lr
        self._set()

    def _set(self):
        fraction = self.left / self.total
        for group in self.optimizer.param_groups:
            group["lr"] = fraction * self.a + (1 - fraction) * self.b

    def step(self):
        self.left = max(self.left - 1, 0)
        self._set()
        return self


class PPOScheduler:
    """Replaced while the observer looks, as the notebook's is."""


@right("make_optimizer")
def groups_and_keywords(agent, num_updates, initial_lr, end_lr):
    groups = [{"params": list(agent.actor.parameters())}, {"params": [*agent.critic.parameters(), agent.log_std]}]
    optimizer = torch.optim.Adam(groups, initial_lr, eps=1e-5, fused=False, foreach=True)
    return optimizer, PPOScheduler(optimizer=optimizer, initial_lr=initial_lr, end_lr=end_lr, num_updates=num_updates)


@right("make_optimizer")
def as_a_list(agent, num_updates, initial_lr, end_lr):
    own = [p for p in agent.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(own, lr=initial_lr, betas=(0.9, 0.999), eps=1e-5)
    return [optimizer, PPOScheduler(optimizer, initial_lr, end_lr, num_updates)]


# Metrics --------------------------------------------------------------------------------------------------------------

@right("calc_old_approx_kl")
def a_tensor(new_logprobs, old_logprobs):
    return -(new_logprobs - old_logprobs).mean()


@right("calc_approx_kl")
def with_expm1(new_logprobs, old_logprobs):
    log_ratio = new_logprobs - old_logprobs
    return (torch.expm1(log_ratio) - log_ratio).mean().item()


@right("calc_clipfrac")
def counted(new_logprobs, old_logprobs, clip_coef):
    ratio = np.exp((new_logprobs - old_logprobs).numpy())
    return np.mean((ratio < 1 - clip_coef) | (ratio > 1 + clip_coef))


@right("calc_explained_variance")
def sample_variances(values, returns):
    variance = torch.var(returns)
    return float("nan") if variance == 0 else float(1 - torch.var(returns - values) / variance)


@right("calc_explained_variance")
def in_numpy(values, returns):
    v, y = values.numpy().flatten(), returns.numpy().flatten()
    return np.nan if np.var(y) == 0 else 1 - np.var(y - v) / np.var(y)


@right("calc_entropy")
def entropy_by_hand(probs):
    return -(probs.probs * probs.probs.log()).sum(1).mean()


# The two phases -------------------------------------------------------------------------------------------------------

def policy(agent, obs):
    return Categorical(logits=agent.actor(obs))


@right("rollout_phase")
@torch.inference_mode()
def preallocated(agent, envs, next_obs, next_done, args):
    """Buffers filled in place, Gumbel noise for the sampling, values and log-probabilities once at the end."""
    T, N = args.num_steps, len(next_obs)
    obs, rewards, dones = torch.zeros(T, *next_obs.shape), torch.zeros(T, N), torch.zeros(T, N)
    actions, lasts = torch.zeros(T, N), []
    for t in range(T):
        obs[t], dones[t] = next_obs, next_done
        logits = agent.actor(next_obs)
        actions[t] = (logits - torch.log(-torch.log(torch.rand_like(logits)))).argmax(-1)
        seen, reward, terminated, truncated, infos = envs.step(actions[t].long().numpy())
        rewards[t] = torch.tensor(reward)
        lasts += [(t, n, infos["final_obs"][n]) for n in range(N) if truncated[n] and not terminated[n]]
        next_obs, next_done = torch.tensor(seen), torch.tensor(np.logical_or(terminated, truncated)).float()
    for t, n, last in lasts:
        rewards[t, n] += args.gamma * agent.critic(torch.tensor(last)).item()
    logprobs = torch.log_softmax(agent.actor(obs), -1).gather(-1, actions.long()[..., None])[..., 0]
    return SimpleNamespace(obs=obs, actions=actions, logprobs=logprobs, rewards=rewards, dones=dones,
                           values=agent.critic(obs)[..., 0], next_obs=next_obs, next_done=next_done)


@right("rollout_phase")
def critic_asked_at_every_step(agent, envs, next_obs, next_done, args):
    """V(final_obs) is computed for every environment and masked."""
    rows = []
    for _ in range(args.num_steps):
        with torch.no_grad():
            probs = policy(agent, next_obs)
            action = torch.multinomial(probs.probs, 1).squeeze(1)
            logprob, value = probs.log_prob(action), agent.critic(next_obs).view(-1)
        new_obs, reward, terminated, truncated, infos = envs.step(action.cpu().numpy())
        last = np.array(new_obs)
        for n in np.flatnonzero(terminated | truncated):
            last[n] = infos["final_obs"][n]
        with torch.no_grad():
            bonus = args.gamma * agent.critic(torch.Tensor(last)).view(-1) * torch.Tensor(truncated & ~terminated)
        rows.append((next_obs, action, logprob, torch.Tensor(reward) + bonus, next_done, value))
        next_obs, next_done = torch.Tensor(new_obs), torch.Tensor(terminated + truncated)
    obs, action, logprob, reward, done, value = map(torch.stack, zip(*rows))
    return SimpleNamespace(obs=obs, actions=action, logprobs=logprob, rewards=reward, dones=done, values=value,
                           next_obs=next_obs, next_done=next_done)


def _missing(*arguments, **options):
    raise NotImplementedError


compute_advantages = calc_policy_loss = calc_value_function_loss = calc_entropy_loss = _missing


@right("learning_phase")
def losses_backward_one_by_one(agent, optimizer, scheduler, rollout, metrics, args):
    """Three calls of backward add up to that of the sum; gradients are set to None by hand."""
    value = agent.critic(rollout.next_obs).detach().T
    advantages = compute_advantages(
        next_value=value, next_done=rollout.next_done, rewards=rollout.rewards, values=rollout.values, dones=rollout.dones,
        device="cpu", gamma=args.gamma, gae_lambda=args.gae_lambda)
    for epoch in range(args.update_epochs):
        minibatches = make_minibatches(
            obs=rollout.obs, logprobs=rollout.logprobs, actions=rollout.actions, advantages=advantages, values=rollout.values,
            obs_shape=rollout.obs.shape[2:], action_shape=rollout.actions.shape[2:], batch_size=args.batch_size,
            minibatch_size=args.batch_size // args.num_minibatches)
        for minibatch in minibatches:
            for p in agent.parameters():
                p.grad = None
            dist = policy(agent, minibatch.obs)
            policy_loss = calc_policy_loss(dist, minibatch.actions, minibatch.advantages, minibatch.logprobs, args.clip_coef)
            value_loss = calc_value_function_loss(agent.critic, minibatch.obs, minibatch.returns, args.vf_coef)
            entropy_loss = calc_entropy_loss(dist, args.ent_coef)
            for loss in (policy_loss, entropy_loss, value_loss):
                loss.backward(retain_graph=True)
            nn.utils.clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], args.max_grad_norm)
            optimizer.step()
            metrics.add(dist, minibatch, policy_loss.detach(), value_loss.detach())
        if epoch == args.update_epochs - 1:
            scheduler.step()


def make_minibatches(*arguments, **options):
    raise NotImplementedError
