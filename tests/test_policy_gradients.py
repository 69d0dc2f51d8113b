"""01_policy_gradients: the theory holds, the expected numbers have other witnesses, mistakes are named, right ways pass."""

import numpy as np
import pytest
import torch
from torch import nn

import rl_tests
from grading import solutions
from grading.build import expect
from grading.cases import VISIBLE_SEED, cases_of
from grading.mistakes import mistakes_of
from rl_checks import engine

NAME = "01_policy_gradients"
PIECES = rl_tests.observers_of(NAME)
SEEDS = (VISIBLE_SEED, "a", "b")
CASES = {(piece, seed): expect(NAME, PIECES[piece], cases_of(NAME, piece, seed)) for piece in PIECES for seed in SEEDS}


@pytest.fixture(scope="module")
def theory():
    return solutions.load(NAME)


def by_hand(piece):
    return [case for case in CASES[piece, VISIBLE_SEED] if case.name.startswith("by hand")]


# Worked with a pencil: the numbers of the notebook's examples ---------------------------------------------------------


def test_returns_worked_out_with_a_pencil():
    """gamma = 1/2: (1, 2, 4) gives 1 + 1 + 1 = 3; (0, 0, 8) gives 8/4 = 2. Backwards: 4, 2 + 2 = 4, 1 + 2 = 3."""
    assert by_hand("discounted_returns")[0].expected["returns"].tolist() == [3.0, 2.0]
    assert by_hand("reward_to_go")[0].expected["to_go"].tolist() == [[3.0, 2.0], [4.0, 4.0], [4.0, 8.0]]


def test_policy_gradient_loss_worked_out_with_a_pencil():
    """Every log-probability is -log 3. Weights (3, 1): log 3 * 4/2. Weights (1, -1): 0, with a gradient all the same."""
    plain, with_baseline = by_hand("policy_gradient_loss")
    assert plain.expected["loss"].item() == pytest.approx(2 * np.log(3))
    assert with_baseline.expected["loss"].item() == pytest.approx(0.0, abs=1e-6)
    third = torch.tensor([1.0, 1.0, 1.0]) / 3
    taken = torch.eye(3)[[0, 2]] - third  # what the logits of what was done should gain
    gradient = "gradient in the logits"
    torch.testing.assert_close(plain.expected[gradient], -torch.stack([1.5 * taken[0], 0.5 * taken[1]]))
    torch.testing.assert_close(with_baseline.expected[gradient], -torch.stack([0.5 * taken[0], -0.5 * taken[1]]))


def test_kl_worked_out_with_a_pencil():
    expected = 0.5 * np.log(2) + 0.5 * np.log(2 / 3)
    assert by_hand("kl_categorical")[0].expected["kl"].item() == pytest.approx(expected, abs=1e-6)


def test_clipped_objective_worked_out_with_a_pencil():
    expected = by_hand("clipped_objective")[0].expected
    assert expected["objective"].tolist() == [2.5, -3.0, 1.0, -1.5]
    assert expected["gradient in the ratio"].tolist() == [0.0, -2.0, 2.0, 0.0]


def test_td_errors_worked_out_with_a_pencil():
    assert by_hand("td_errors")[0].expected["deltas"].tolist() == [[1.0, -1.0]]


# Other witnesses: the definitions, slowly and in float64 --------------------------------------------------------------


def every_case(piece):
    return [case for seed in SEEDS for case in CASES[piece, seed]]


def test_returns_are_the_sums_of_the_definition():
    for case in every_case("reward_to_go"):
        rewards, gamma = case.inputs["rewards"].double().numpy(), case.inputs["gamma"]
        T = len(rewards)
        to_go = [sum(gamma ** (k - t) * rewards[k] for k in range(t, T)) for t in range(T)]
        np.testing.assert_allclose(case.expected["to_go"], to_go, rtol=1e-5, atol=1e-6)
    for case in every_case("discounted_returns"):
        rewards, gamma = case.inputs["rewards"].double().numpy(), case.inputs["gamma"]
        total = sum(gamma**t * row for t, row in enumerate(rewards))
        np.testing.assert_allclose(case.expected["returns"], total, rtol=1e-5, atol=1e-6)


def test_kl_is_that_of_torch():
    for case in every_case("kl_categorical"):
        p, q = (torch.distributions.Categorical(logits=case.inputs[name]) for name in ("logits_p", "logits_q"))
        torch.testing.assert_close(case.expected["kl"], torch.distributions.kl_divergence(p, q), rtol=1e-5, atol=1e-6)


def test_gaussian_kl_is_that_of_torch(theory):
    mean_p, std_p, mean_q, std_q = torch.tensor([0.5]), torch.tensor([2.0]), torch.tensor([-1.0]), torch.tensor([0.25])
    normal = torch.distributions.Normal
    expected = torch.distributions.kl_divergence(normal(mean_p, std_p), normal(mean_q, std_q))
    torch.testing.assert_close(theory["kl_gaussian"](mean_p, std_p, mean_q, std_q), expected)


def test_clipped_objective_follows_its_table():
    """The table of the notebook: in which field the value is what, and where the gradient lives."""
    fields = set()
    for case in every_case("clipped_objective"):
        epsilon = case.inputs["epsilon"]
        rows = zip(*(case.inputs[name].tolist() for name in ("ratio", "advantages")),
                   *(case.expected[name].tolist() for name in ("objective", "gradient in the ratio")))  # fmt: skip
        for ratio, A, value, slope in rows:
            side = (ratio > 1 + epsilon) - (ratio < 1 - epsilon)
            assert abs(abs(ratio - 1) - epsilon) > 1e-3  # never on the edge
            flat = (side == 1 and A > 0) or (side == -1 and A < 0)
            assert value == pytest.approx((1 + side * epsilon) * A if flat else ratio * A)
            assert slope == pytest.approx(0.0 if flat else A)
            fields.add((side, A > 0))
    assert len(fields) == 6


# The theory -----------------------------------------------------------------------------------------------------------


def test_a_baseline_leaves_the_gradient_unbiased_and_cuts_its_variance(theory):
    """Three levers that pay near 1000: 20,000 estimates with and without a baseline against the exact gradient."""
    loss_of = theory["policy_gradient_loss"]
    dice = torch.Generator().manual_seed(0)
    payout, logits = torch.tensor([999.0, 1000.0, 1001.0]), torch.tensor([0.5, 0.0, -0.5])
    probs = torch.softmax(logits, 0)
    exact = probs * (payout - probs @ payout)  # d/d logit_j of sum_a pi(a) payout(a)
    actions = torch.multinomial(probs, 20_000, replacement=True, generator=dice)
    rewards = payout[actions]
    estimates = {}
    for baseline in (None, 999.5):
        rows = logits.expand(len(actions), 3).clone().requires_grad_()
        baselines = None if baseline is None else torch.full_like(rewards, baseline)
        (gradient,) = torch.autograd.grad(loss_of(rows, actions, rewards, baselines), rows)
        estimates[baseline] = -gradient * len(actions)  # [rows, 3], one estimate each
    for samples in estimates.values():
        error = samples.std(dim=0) / len(samples) ** 0.5
        assert ((samples.mean(dim=0) - exact).abs() <= 4.5 * error).all()  # 1 false alarm in 50,000 for six numbers
    assert estimates[999.5].var(dim=0).sum() < 1e-4 * estimates[None].var(dim=0).sum()


def test_a_batch_mean_as_baseline_shrinks_the_gradient_by_1_minus_1_over_B(theory):
    """What the notebook says of a baseline that contains its own sample, by summing over all batches of two."""
    probs, payout = torch.tensor([0.25, 0.75], dtype=torch.float64), torch.tensor([1.0, 3.0], dtype=torch.float64)
    logits = probs.log()
    mean = torch.zeros(2, dtype=torch.float64)
    for a in range(2):
        for b in range(2):
            actions = torch.tensor([a, b])
            rows = logits.expand(2, 2).clone().requires_grad_()
            rewards = payout[actions]
            loss = theory["policy_gradient_loss"](rows, actions, rewards, rewards.mean().expand(2))
            (gradient,) = torch.autograd.grad(loss, rows)
            mean -= probs[a] * probs[b] * gradient.sum(dim=0)
    torch.testing.assert_close(mean, 0.5 * probs * (payout - probs @ payout))


def test_gae_is_the_td_error_for_lambda_0_and_monte_carlo_for_lambda_1(theory):
    draw = torch.Generator().manual_seed(1)
    rewards, values = torch.randn(6, 4, generator=draw), torch.randn(6, 4, generator=draw)
    terminated = torch.zeros(6, 4, dtype=torch.bool)
    terminated[-1] = True
    next_values = torch.cat([values[1:], torch.full((1, 4), 100.0)])  # behind the end: must not be used
    deltas = theory["td_errors"](rewards, values, next_values, terminated, 0.9)
    gae = theory["gae_of_episode"]
    torch.testing.assert_close(gae(deltas, 0.9, 0.0), deltas)
    torch.testing.assert_close(gae(deltas, 0.9, 1.0), theory["reward_to_go"](rewards, 0.9) - values)


def test_gae_is_the_sum_of_the_paper(theory):
    deltas, gamma, lam = torch.randn(7, 2, generator=torch.Generator().manual_seed(2)), 0.9, 0.7
    slow = [sum((gamma * lam) ** k * deltas[t + k] for k in range(7 - t)) for t in range(7)]
    torch.testing.assert_close(theory["gae_of_episode"](deltas, gamma, lam), torch.stack(slow))


def test_the_surrogate_touches_the_true_return_and_then_promises_too_much(theory):
    solve, promise = theory["solve_corridor"], theory["promised_return"]
    old, h = 0.4, 1e-5
    assert promise(old, old) == pytest.approx(solve(old)[0])
    slopes = [(f(old + h) - f(old - h)) / (2 * h) for f in (lambda p: promise(p, old), lambda p: solve(p)[0])]
    assert slopes[0] == pytest.approx(slopes[1], rel=1e-4)
    assert promise(0.9, old) > 3 * solve(0.9)[0]
    assert solve(0.9)[0] < solve(old)[0]


def test_the_exact_corridor_agrees_with_walks_through_it(theory):
    dice, right, gamma = torch.Generator().manual_seed(0), 0.45, 0.95
    place, alive, total = torch.zeros(4000, dtype=torch.long), torch.ones(4000), torch.zeros(4000)
    for t in range(200):
        alive = alive * (place < 8)
        total += gamma**t * alive * (place == 3)
        step = torch.where(torch.rand(4000, generator=dice) < right, 1, -1)
        place = torch.where(alive.bool(), (place + step).clamp(min=0), place)
    error = total.std() / 4000**0.5
    assert abs(total.mean() - theory["solve_corridor"](right)[0]) <= 4 * error


def test_bias_falls_and_variance_rises_with_lambda(theory):
    bias, variance = theory["bias_and_variance"](np.array([0.0, 0.5, 0.9, 1.0]), critic_error=1.0)
    assert (np.diff(bias) < 0).all() and (np.diff(variance) > 0).all()
    assert bias[-1] < 0.02 * bias[0]


def test_the_clip_does_not_bound_the_kl(theory):
    kls = {rate: max(theory["overfit_one_batch"](rate, epochs=6)) for rate in (3e-4, 1e-2)}
    assert kls[1e-2] > 0.05 > 0.01 > kls[3e-4]


def test_the_kl_example_of_unsampled_actions():
    """Sampled action 0 has ratio 1; the other two carry a KL of 1.2."""
    old, new = torch.tensor([[0.5, 0.25, 0.25]]), torch.tensor([[0.5, 0.499, 0.001]])
    assert (old * (old / new).log()).sum().item() == pytest.approx(1.2, abs=0.01)


# What the notebook shows ----------------------------------------------------------------------------------------------


def test_without_a_baseline_the_bandit_is_a_lottery(theory):
    ends = {b: [theory["play_bandit"](b, seed)[-1] for seed in range(8)] for b in (False, True)}
    assert min(ends[True]) > 0.9
    assert sum(end > 0.9 for end in ends[False]) < 6


def test_the_variance_falls_from_total_to_reward_to_go_to_baseline(theory):
    noise = [g.var(dim=0).sum().item() for g in theory["measure_variance"](num_episodes=64).values()]
    assert noise[0] > 1.5 * noise[1] and noise[1] > 1.3 * noise[2]


def test_rewards_after_the_first_episode_do_not_count(theory):
    torch.manual_seed(0)
    envs = theory["make_cartpoles"](4)
    states, actions, rewards, alive = theory["collect"](nn.Linear(4, 2), envs, seed=0)
    assert states.shape[:2] == actions.shape == rewards.shape == alive.shape
    assert torch.equal(rewards, alive.float())  # CartPole pays 1 a step
    assert (alive[:-1] | ~alive[1:]).all()  # never alive again


# Mistakes and right ways ----------------------------------------------------------------------------------------------

KEYS = [(piece, key) for piece in PIECES for key in mistakes_of(NAME, piece)]


@pytest.mark.parametrize(("piece", "key"), KEYS)
def test_every_mistake_is_caught_and_named(piece, key):
    wrong = mistakes_of(NAME, piece)[key].wrong
    for seed in SEEDS:
        findings, names, _ = engine.check(PIECES[piece], wrong, CASES[piece, seed])
        assert any(finding.status != engine.PASSED for finding in findings)
        assert names == [key]


def test_every_piece_has_many_mistakes_with_three_different_hints():
    for piece in PIECES:
        known = mistakes_of(NAME, piece).values()
        assert len(known) >= 8
        for mistake in known:
            assert len({mistake.nudge, mistake.pointer, mistake.answer}) == 3


def passes(piece, function):
    findings = [f for seed in SEEDS for f in engine.check(PIECES[piece], function, CASES[piece, seed])[0]]
    return all(finding.status == engine.PASSED for finding in findings)


@pytest.mark.parametrize("piece", PIECES)
def test_the_solution_passes_and_a_stub_is_not_written_yet(theory, piece):
    assert passes(piece, theory[piece])

    def stub(*inputs):
        raise NotImplementedError(f"{piece} is not written yet")

    findings, names, _ = engine.check(PIECES[piece], stub, CASES[piece, VISIBLE_SEED])
    assert {finding.status for finding in findings} == {engine.NOT_WRITTEN} and names == []


def returns_by_matrix(rewards, gamma):
    powers = torch.tensor([gamma**t for t in range(len(rewards))])
    return powers @ rewards


def returns_by_horner(rewards, gamma):
    total = torch.zeros(rewards.shape[1])
    for row in rewards.flip(0):
        total = total * gamma + row
    return total


def to_go_by_matrix(rewards, gamma):
    k = torch.arange(len(rewards))
    lag = k.unsqueeze(0) - k.unsqueeze(1)  # [t, k]
    weights = torch.where(lag >= 0, torch.tensor(float(gamma)).pow(lag.clamp(min=0)), torch.tensor(0.0))
    return weights @ rewards


def to_go_in_numpy(rewards, gamma):
    out = rewards.numpy().astype(np.float64)
    for t in range(len(out) - 2, -1, -1):
        out[t] += gamma * out[t + 1]
    return torch.from_numpy(out).float()


def to_go_in_a_list(rewards, gamma):
    rows = [rewards[-1]]
    for row in reversed(rewards[:-1]):
        rows.insert(0, row + gamma * rows[0])
    return torch.stack(rows)


def loss_by_distribution(logits, actions, returns, baselines=0.0):
    log_probs = torch.distributions.Categorical(logits=logits).log_prob(actions)
    return -(log_probs * (returns - (0.0 if baselines is None else baselines)).detach()).mean()


def loss_by_cross_entropy(logits, actions, returns, baselines=None):
    weights = (returns if baselines is None else returns - baselines).detach()
    return (nn.functional.cross_entropy(logits, actions, reduction="none") * weights).sum() / len(actions)


def loss_by_one_hot(logits, actions, returns, baselines=None):
    chosen = nn.functional.one_hot(actions, logits.shape[1])
    log_probs = ((logits - logits.logsumexp(1, keepdim=True)) * chosen).sum(1)
    with torch.no_grad():
        weights = returns.clone() if baselines is None else returns - baselines
    return torch.mean(-weights * log_probs)


def kl_by_torch(logits_p, logits_q):
    categorical = torch.distributions.Categorical
    return torch.distributions.kl_divergence(categorical(logits=logits_p), categorical(logits=logits_q))


def kl_by_kl_div(logits_p, logits_q):
    log_p, log_q = logits_p.log_softmax(-1), logits_q.log_softmax(-1)
    return nn.functional.kl_div(log_q, log_p, reduction="none", log_target=True).sum(-1)


def kl_in_float64(logits_p, logits_q):
    log_p, log_q = (z.double() - z.double().logsumexp(1, keepdim=True) for z in (logits_p, logits_q))
    return (log_p.exp() * (log_p - log_q)).sum(1).float()


def objective_by_where(ratio, advantages, epsilon):
    bounded = torch.where(advantages > 0, ratio.clamp(max=1 + epsilon), ratio.clamp(min=1 - epsilon))
    return bounded * advantages


def objective_by_stack(ratio, advantages, epsilon):
    clipped = torch.clip(ratio, 1 - epsilon, 1 + epsilon)
    return torch.stack([advantages * ratio, advantages * clipped]).min(dim=0).values


def deltas_by_where(rewards, values, next_values, terminated, gamma):
    return rewards + torch.where(terminated, torch.zeros_like(next_values), gamma * next_values) - values


def deltas_in_a_loop(rewards, values, next_values, terminated, gamma):
    out = torch.empty_like(rewards)
    for t in range(len(rewards)):
        for n in range(rewards.shape[1]):
            future = 0.0 if terminated[t, n] else gamma * next_values[t, n]
            out[t, n] = rewards[t, n] + future - values[t, n]
    return out


def deltas_with_a_mask_of_floats(rewards, values, next_values, terminated, gamma):
    return rewards - values + gamma * next_values.masked_fill(terminated, 0.0)


RIGHT = {
    "discounted_returns": (returns_by_matrix, returns_by_horner),
    "reward_to_go": (to_go_by_matrix, to_go_in_numpy, to_go_in_a_list),
    "policy_gradient_loss": (loss_by_distribution, loss_by_cross_entropy, loss_by_one_hot),
    "kl_categorical": (kl_by_torch, kl_by_kl_div, kl_in_float64),
    "clipped_objective": (objective_by_where, objective_by_stack),
    "td_errors": (deltas_by_where, deltas_in_a_loop, deltas_with_a_mask_of_floats),
}


@pytest.mark.parametrize(("piece", "function"), [(piece, f) for piece, group in RIGHT.items() for f in group])
def test_other_right_ways_to_write_it_pass(piece, function):
    assert passes(piece, function)


def test_random_wrong_answers_get_no_name():
    draw = torch.Generator().manual_seed(0)
    for piece, (quantity, shape_of) in {
        "reward_to_go": ("to_go", "rewards"),
        "td_errors": ("deltas", "rewards"),
        "clipped_objective": ("objective", "ratio"),
    }.items():
        for _ in range(50):
            seen = []
            for case in CASES[piece, VISIBLE_SEED]:
                noise = torch.randn(case.inputs[shape_of].shape, generator=draw)
                seen.append((case, engine.Observation(engine.PASSED, {**case.expected, quantity: noise})))
            assert engine.conclude(PIECES[piece], seen)[1] == []
