"""02_lunar_lander: independent witnesses for the expected numbers, all mistakes, and many right ways to write it."""

import inspect

import numpy as np
import pytest
import torch
from lunar_alternatives import ADVANTAGES, LOSSES, no_truncations, slow_advantages
from torch import nn

import rl_tests
from grading import solutions
from grading.build import expect
from grading.cases import cases_of
from grading.mistakes import mistakes_of, version
from rl_checks import engine

NAME = "02_lunar_lander"
PIECES = rl_tests.observers_of(NAME)
GRADED = ("compute_advantages", "compute_loss")


@pytest.fixture(scope="module")
def PPO():
    return solutions.load(NAME)["PPO"]


def visible(piece):
    return rl_tests.visible_cases(NAME, piece)[0]


def fresh(piece, seed):
    return expect(NAME, PIECES[piece], cases_of(NAME, piece, seed))


# Witnesses ------------------------------------------------------------------------------------------------------------

def test_advantages_worked_out_with_a_pencil():
    """V(s) = s, gamma = 1/2, lambda = 1/4, so gamma lambda = 1/8; environment 1 ends at its first step.

    env 0   delta = 1 + 2/2 - 1 = 1,   0 + 3/2 - 2 = -1/2,   2 + 4/2 - 3 = 1
            A_2 = 1,  A_1 = -1/2 + 1/8 = -3/8,  A_0 = 1 - 3/64 = 61/64
    env 1   delta = -1 + 0 - 2 = -3,   1 + 1/2 - 0 = 3/2,   1/2 + 2/2 - 1 = 1/2
            A_2 = 1/2,  A_1 = 3/2 + 1/16 = 25/16,  A_0 = -3 (the sum is cut)
    """
    case = next(case for case in visible("compute_advantages") if case.name.startswith("by hand"))
    advantages = torch.tensor([61 / 64, -3 / 8, 1, -3, 25 / 16, 1 / 2])
    assert torch.equal(case.expected["advantages"], advantages)
    assert torch.equal(case.expected["critic_targets"], advantages + torch.tensor([1.0, 2, 3, 2, 0, 1]))


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_expected_advantages_are_those_of_the_paper(seed):
    for case in visible("compute_advantages") if seed is None else fresh("compute_advantages", seed):
        advantages, V = slow_advantages(case.inputs)
        torch.testing.assert_close(case.expected["advantages"].double(), advantages, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(case.expected["critic_targets"].double(), advantages + V, rtol=1e-5, atol=1e-5)


def slow_losses(inputs, actor_weight, critic_weight):
    """Schulman et al. 2017, eq. 7, and the mean squared error, one row at a time in float64."""
    objective = error = 0.0
    for state, action, A, target, old in zip(*(inputs[name] for name in (
            "states", "actions", "advantages", "critic_targets", "log_probs_old"))):
        A, target, old = A.double(), target.double(), old.double()
        logits = actor_weight @ state.double()
        ratio = torch.exp(logits[action] - torch.logsumexp(logits, 0) - old)
        clipped = min(max(ratio, 1 - inputs["epsilon"]), 1 + inputs["epsilon"])
        objective += min(ratio * A, clipped * A)
        error += (critic_weight[0] @ state.double() - target) ** 2
    return -objective / len(inputs["states"]), error / len(inputs["states"])


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_expected_losses_and_gradients_are_those_of_the_paper(seed):
    for case in visible("compute_loss") if seed is None else fresh("compute_loss", seed):
        actor, critic = (case.inputs[name].double().requires_grad_() for name in ("actor_weight", "critic_weight"))
        actor_loss, critic_loss = slow_losses(case.inputs, actor, critic)
        expected = case.expected
        torch.testing.assert_close(expected["actor_loss"].double(), actor_loss.detach(), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(expected["critic_loss"].double(), critic_loss.detach(), rtol=1e-5, atol=1e-5)
        grads = [torch.zeros_like(actor) if g is None else g
                 for g in torch.autograd.grad(actor_loss, [actor], allow_unused=True)] if actor_loss.requires_grad \
            else [torch.zeros_like(actor)]
        size = actor.numel()  # the rest is the bias, which is the sum over rows
        torch.testing.assert_close(expected["actor_loss.grad(actor)"][:size].double(), grads[0].flatten(), rtol=1e-4, atol=1e-5)
        (grad,) = torch.autograd.grad(critic_loss, [critic])
        torch.testing.assert_close(expected["critic_loss.grad(critic)"][:3].double(), grad.flatten(), rtol=1e-4, atol=1e-5)
        assert not expected["actor_loss.grad(critic)"].any()
        assert not expected["critic_loss.grad(actor)"].any()


def test_the_cases_reach_every_branch_of_the_clip():
    kinds = set()
    for case in visible("compute_loss"):
        i = case.inputs
        log_probs = torch.log_softmax(i["states"] @ i["actor_weight"].T, 1).gather(1, i["actions"][:, None])[:, 0]
        ratio = torch.exp(log_probs - i["log_probs_old"])
        assert ((ratio - 1).abs() - i["epsilon"]).abs().min() > 1e-2  # never on the edge
        side = torch.where(ratio > 1 + i["epsilon"], 1, torch.where(ratio < 1 - i["epsilon"], -1, 0))
        kinds |= {(int(s), int(a > 0)) for s, a in zip(side, i["advantages"])}
    assert kinds == {(s, a) for s in (-1, 0, 1) for a in (0, 1)}


# Mistakes -------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("piece, key", [(piece, key) for piece in GRADED for key in mistakes_of(NAME, piece)])
def test_every_mistake_is_caught_and_named(PPO, piece, key):
    wrong = version(PIECES[piece], PPO, mistakes_of(NAME, piece)[key].wrong)
    for cases in (visible(piece), fresh(piece, "a"), fresh(piece, "b")):
        findings, names, _ = engine.check(PIECES[piece], wrong, cases)
        assert any(finding.status != engine.PASSED for finding in findings)
        assert names == [key]


def test_there_are_many_mistakes_with_three_different_hints_each():
    books = [mistakes_of(NAME, piece) for piece in GRADED]
    assert sum(map(len, books)) >= 25
    for mistake in (m for book in books for m in book.values()):
        assert len({mistake.nudge, mistake.pointer, mistake.answer}) == 3
        assert all(len(hint.split()) >= 3 for hint in mistake.hints("answer"))


def test_two_mistakes_at_once_are_caught_and_not_misnamed(PPO):
    class Wrong(PPO):
        def compute_advantages(self, *batch):
            advantages, targets = mistakes_of(NAME, "compute_advantages")["sum_not_cut"].wrong(self, *batch)
            return 2 * advantages, targets
    findings, names, _ = engine.check(PIECES["compute_advantages"], Wrong, visible("compute_advantages"))
    assert any(finding.status != engine.PASSED for finding in findings)
    assert set(names) <= {"sum_not_cut"}


def test_random_answers_are_refused_without_a_name(PPO):
    torch.manual_seed(0)

    class Random(PPO):
        def compute_advantages(self, states, *rest):
            return torch.randn(len(states)), torch.randn(len(states))

        def compute_loss(self, states, *rest):
            scale = torch.randn(2)
            return scale[0] * self.actor(states).sum(), scale[1] * self.critic(states).sum()
    for piece in GRADED:
        for _ in range(20):
            findings, names, _ = engine.check(PIECES[piece], Random, visible(piece))
            assert any(finding.status == engine.FAILED for finding in findings)
            assert names == []


# Right in other ways --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("piece, right", [*(("compute_advantages", f) for f in ADVANTAGES),
                                          *(("compute_loss", f) for f in LOSSES)],
                         ids=lambda x: x if isinstance(x, str) else x.__name__)
def test_other_right_ways_pass(PPO, piece, right):
    other = version(PIECES[piece], PPO, right)
    for cases in (visible(piece), fresh(piece, "c"), fresh(piece, "d")):
        findings, _, _ = engine.check(PIECES[piece], other, cases)
        assert [(f.case.name, f.differences, f.error) for f in findings if f.status != engine.PASSED] == []


def test_a_solution_without_truncations_is_not_asked_about_them(PPO):
    other = version(PIECES["compute_advantages"], PPO, no_truncations)
    findings, _, _ = engine.check(PIECES["compute_advantages"], other, visible("compute_advantages"))
    assert not any("truncation" in finding.case.name for finding in findings)


# The class itself -----------------------------------------------------------------------------------------------------

def test_the_constructor_and_the_layers_are_the_contract(PPO):
    assert list(inspect.signature(PPO).parameters) == ["state_dim", "num_actions", "gamma", "lmbda", "epsilon", "num_steps"]
    torch.manual_seed(42)
    ppo = PPO(5, 3, 0.8, 0.95, 0.2, 1)
    torch.manual_seed(42)
    for network, outputs in ((ppo.actor, 3), (ppo.critic, 1)):  # the actor is built first, layer by layer
        for index, shape in ((0, (128, 5)), (2, (128, 128)), (4, (outputs, 128))):
            layer = nn.Linear(shape[1], shape[0])
            assert torch.equal(network[index].weight, layer.weight)
            assert isinstance(network[min(index + 1, 3)], nn.ReLU)
    assert len(list(ppo.actor)) == len(list(ppo.critic)) == 5


@pytest.mark.parametrize("dtype", [torch.bool, torch.float32, torch.int64])
def test_terminations_of_any_dtype_are_understood(PPO, dtype):
    torch.manual_seed(0)
    ppo = PPO(5, 3, 0.8, 0.95, 0.2, 2)
    states, next_states, rewards = torch.randn(6, 5), torch.randn(6, 5), torch.randn(6)
    d = torch.tensor([0, 1, 0, 0, 1, 0])
    expected = ppo.compute_advantages(states, rewards, next_states, d.float())
    for got, wanted in zip(ppo.compute_advantages(states, rewards, next_states, d.to(dtype)), expected):
        assert got.dtype == torch.float32
        assert torch.equal(got, wanted)


def original_style_check(PPO):
    """A check cell as an instructor writes one: a generator over random batches with overwritten weights."""
    def test_ppo():
        torch.manual_seed(42)
        ppo = PPO(5, 3, 0.8, 0.95, 0.2, 1)
        with torch.no_grad():
            for network in (ppo.actor, ppo.critic):
                for index in (0, 2, 4):
                    network[index].weight.fill_(0.01 * (index + 1))
                    network[index].bias.fill_(0.02)
        yield "compute_advantages"
        for n in (4, 7):
            states, next_states, rewards = torch.rand(n, 5), torch.rand(n, 5), torch.rand(n)
            terminations = torch.randint(0, 2, (n,))
            advantages, targets = ppo.compute_advantages(states, rewards, next_states, terminations)
            ok = yield from rl_tests.check_torch_tensor(advantages, "advantages", (n,), torch.float32)
            v, nv = ppo.critic(states)[:, 0], ppo.critic(next_states)[:, 0]
            if ok:
                yield torch.allclose(targets, rewards + 0.8 * nv * (1 - terminations)), "wrong targets"
                yield torch.isclose(advantages, targets - v).all(), "wrong advantages"
                yield not advantages.requires_grad, "advantages must be detached"
            yield None
        yield "compute_loss"
        actions, log_probs_old = torch.randint(0, 3, (n,)), -torch.rand(n)
        actor_loss, critic_loss = ppo.compute_loss(states, actions, advantages, targets, log_probs_old)
        yield from rl_tests.check_torch_tensor(actor_loss, "actor_loss", (), torch.float32)
        yield actor_loss.requires_grad and critic_loss.requires_grad, "losses need gradients"
        yield torch.isclose(critic_loss, (v - targets).pow(2).mean()), "wrong critic_loss"
        yield None
    return test_ppo()


def test_a_check_cell_of_an_instructor_accepts_the_solution_and_refuses_a_wrong_class(PPO):
    assert rl_tests.run_tests(original_style_check(PPO)).passed
    wrong = version(PIECES["compute_advantages"], PPO, mistakes_of(NAME, "compute_advantages")["mask_inverted"].wrong)
    with pytest.raises(rl_tests.CheckFailed, match="wrong targets"):
        rl_tests.run_tests(original_style_check(wrong))


def test_the_whole_class_passes_and_the_report_is_returned(PPO, capsys):
    report = rl_tests.test_ppo(PPO)
    assert report.passed
    assert "20 of 20 checks pass" in capsys.readouterr().out


@pytest.mark.parametrize("thing, words", [
    (None, "PPO must be the class itself, as in rl_tests.test_ppo(PPO); it is None"),
    (np.zeros(3), "it is a numpy.ndarray of shape (3,)"),
    (lambda *a: None, "it is a function"),
    (type("Empty", (), {}), "Empty"),
])
def test_a_thing_of_the_wrong_type_gets_one_clear_line(thing, words):
    with pytest.raises(rl_tests.CheckFailed) as caught:
        rl_tests.test_ppo(thing)
    assert words in str(caught.value)
    assert len(caught.value.report.rows) <= 3


def test_networks_of_other_sizes_or_shared_are_refused(PPO):
    class Narrow(PPO):
        def __init__(self, *settings):
            super().__init__(*settings)
            self.critic = nn.Sequential(nn.Linear(settings[0], 64), nn.ReLU(), nn.Linear(64, 1))

    class Shared(PPO):
        def __init__(self, *settings):
            super().__init__(*settings)
            self.critic = nn.Sequential(*list(self.actor)[:4], nn.Linear(128, 1))
    for wrong, words in ((Narrow, "layers of the critic is '5-64-1', expected '5-128-128-1'"), (Shared, "share parameters")):
        with pytest.raises(rl_tests.CheckFailed) as caught:
            rl_tests.test_ppo(wrong)
        assert words in str(caught.value)


def test_an_unknown_piece_is_named():
    with pytest.raises(ValueError, match=r"compute_advantage'.*compute_advantages"):
        rl_tests.test_ppo(None, only="compute_advantage")
