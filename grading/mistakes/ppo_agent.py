"""Known mistakes of 03_ppo_details in the agents."""

import itertools
import math

import torch
from torch import nn

from grading.mistakes import Book

MISTAKES = Book()
ROOT_2 = math.sqrt(2)


def layer(size_in, size_out, gain=ROOT_2, bias=0.0, init=nn.init.orthogonal_):
    made = nn.Linear(size_in, size_out)
    init(made.weight, gain)
    nn.init.constant_(made.bias, bias)
    return made


def network(size_in, size_out, last_gain, *, activation=nn.Tanh, width=64, hidden=2, hidden_gain=ROOT_2, bias=0.0,
            init=nn.init.orthogonal_, after=()):
    sizes = [size_in, *[width] * hidden]
    layers = []
    for a, b in itertools.pairwise(sizes):
        layers += [layer(a, b, hidden_gain, bias, init), *([activation()] if activation else [])]
    return nn.Sequential(*layers, layer(sizes[-1], size_out, last_gain, bias, init), *after)


def agent(name, nudge, pointer, answer, actor=None, critic=None, sizes=None, finish=None):
    """Registers a wrong Agent. actor, critic: changed options of its network; finish(agent, D, A) changes it afterwards."""
    def __init__(self, envs):
        nn.Module.__init__(self)
        D, A = envs.single_observation_space.shape[0], envs.single_action_space.n
        D, A = sizes or (D, A)
        self.actor = network(**{"size_in": D, "size_out": A, "last_gain": 0.01} | (actor or {}))
        self.critic = network(**{"size_in": D, "size_out": 1, "last_gain": 1.0} | (critic or {}))
        if finish:
            finish(self, D, A)
    _agent(nudge, pointer, answer)(type(name, (nn.Module,), {"__init__": __init__}))


def both(**options):
    return {"actor": options, "critic": options}


def _agent(nudge, pointer, answer):
    return MISTAKES.add("agent_init", nudge=nudge, pointer=pointer, answer=answer)


def _plain(weight, gain):
    nn.init.kaiming_uniform_(weight, a=math.sqrt(5))


LAYERS = "layer_init(nn.Linear(...)) for every layer"

agent("default_initialisation", "Who chooses the first weights of your networks?",
      "The layers keep torch's default weights; they should be orthogonal.", LAYERS, **both(init=_plain))
agent("normal_initialisation", "Are the rows of your weight matrices orthogonal to each other?",
      "The weights are drawn from a normal distribution; they should be orthogonal.", LAYERS,
      **both(init=lambda weight, gain: nn.init.normal_(weight, 0.0, 0.1), bias=0.25))
agent("relu_for_tanh", "Which activation does the diagram show?", "The activations are ReLU; they should be Tanh.",
      "nn.Tanh() between the layers.", **both(activation=nn.ReLU))
agent("gelu_for_tanh", "Which activation does the diagram show?", "The activations are GELU; they should be Tanh.",
      "nn.Tanh() between the layers.", **both(activation=nn.GELU))
agent("sigmoid_for_tanh", "Which activation does the diagram show?",
      "The activations are Sigmoid; they should be Tanh.",
      "nn.Tanh() between the layers.", **both(activation=nn.Sigmoid))
agent("no_activations", "What is a stack of linear layers without anything between them?",
      "There are no activations: three linear layers in a row are one linear layer.", "nn.Tanh() between the layers.",
      **both(activation=None))
agent("softmax_at_the_end", "Who turns logits into probabilities: the network, or the distribution?",
      "The actor ends in a softmax; its outputs should be logits.",
      "Leave the Softmax out; Categorical(logits=...) does it.",
      actor={"after": (nn.Softmax(dim=-1),)})
agent("log_softmax_at_the_end", "Does anything need to come after the last linear layer?",
      "The actor ends in a log-softmax; its outputs should be plain logits.", "End the actor with its linear layer.",
      actor={"after": (nn.LogSoftmax(dim=-1),)})
agent("tanh_after_the_actor", "Between which numbers does a tanh let the logits lie?",
      "The actor ends in a Tanh: its logits cannot leave (-1, 1), so no policy can be sure.",
      "End the actor with its linear layer.", actor={"after": (nn.Tanh(),)})
agent("tanh_after_the_critic", "What is the largest value that your critic can express?",
      "The critic ends in a Tanh: its values cannot leave (-1, 1).", "End the critic with its linear layer.",
      critic={"after": (nn.Tanh(),)})
agent("actor_gain_forgotten", "How sure should the policy be before it has seen anything?",
      "The actor's last layer has the gain sqrt(2) of a hidden layer; it should have 0.01.",
      "layer_init(nn.Linear(64, num_actions), row_norm=0.01)", actor={"last_gain": math.sqrt(2)})
agent("actor_gain_one", "How sure should the policy be before it has seen anything?",
      "The actor's last layer has gain 1; it should have 0.01.",
      "layer_init(nn.Linear(64, num_actions), row_norm=0.01)",
      actor={"last_gain": 1.0})
agent("actor_gain_a_tenth", "Compare the gain of the actor's last layer, digit by digit.",
      "The actor's last layer has gain 0.1; it should have 0.01.",
      "layer_init(nn.Linear(64, num_actions), row_norm=0.01)",
      actor={"last_gain": 0.1})
agent("critic_gain_forgotten", "Which gain does the critic's last layer have in the diagram?",
      "The critic's last layer has the gain sqrt(2) of a hidden layer; it should have 1.",
      "layer_init(nn.Linear(64, 1), row_norm=1.0)", critic={"last_gain": math.sqrt(2)})
agent("critic_gain_of_the_actor", "Which of the two networks should start with tiny outputs?",
      "The critic's last layer has the actor's gain 0.01; it should have 1.",
      "layer_init(nn.Linear(64, 1), row_norm=1.0)",
      critic={"last_gain": 0.01})
agent("gains_swapped", "Which of the two networks should start with tiny outputs?",
      "The gains of the two last layers are swapped.", "0.01 for the actor, 1 for the critic.",
      actor={"last_gain": 1.0}, critic={"last_gain": 0.01})
agent("last_gains_forgotten", "Do all layers want the same gain?",
      "Both last layers have the gain sqrt(2) of hidden layers.",
      "row_norm=0.01 for the actor's, row_norm=1.0 for the critic's.",
      actor={"last_gain": math.sqrt(2)}, critic={"last_gain": math.sqrt(2)})
agent("hidden_gain_one", "Why sqrt(2)? What does an activation do to the size of a signal?",
      "The hidden layers have gain 1; they should have sqrt(2).",
      "layer_init(nn.Linear(...)), whose default is sqrt(2).",
      **both(hidden_gain=1.0))
agent("gain_two", "Is it 2, or its root?", "The hidden layers have gain 2; they should have sqrt(2).",
      "layer_init(nn.Linear(...)), whose default is sqrt(2).", **both(hidden_gain=2.0))
agent("biases_not_zero", "What are the biases before anything has been learned?", "The biases are not 0.",
      "layer_init sets them: bias_const=0.0.", **both(bias=0.125))
agent("narrow_networks", "How many units does a hidden layer have?",
      "The hidden layers are 32 wide; they should be 64.",
      "nn.Linear(64, 64)", **both(width=32))
agent("wide_networks", "How many units does a hidden layer have?", "The hidden layers are 128 wide; they should be 64.",
      "nn.Linear(64, 64)", **both(width=128))
agent("one_hidden_layer", "Count the layers in the diagram.", "There is one hidden layer; there should be two.",
      "Linear, Tanh, Linear, Tanh, Linear", **both(hidden=1))
agent("three_hidden_layers", "Count the layers in the diagram.", "There are three hidden layers; there should be two.",
      "Linear, Tanh, Linear, Tanh, Linear", **both(hidden=3))
agent("a_value_for_every_action", "Is V(s) one number, or one for every action?",
      "The critic has one output per action, as a Q-function has; V(s) is one number.", "nn.Linear(64, 1)",
      finish=lambda self, D, A: setattr(self, "critic", network(D, A, 1.0)))
agent("actor_has_one_output", "How many numbers does a choice between A actions need?",
      "The actor has one output; it needs one logit per action.", "nn.Linear(64, envs.single_action_space.n)",
      actor={"size_out": 1})
agent("sizes_of_cartpole", "Would your agent fit any other environment?",
      "The sizes 4 and 2 are written into the code; take them from envs.",
      "envs.single_observation_space.shape and envs.single_action_space.n", sizes=(4, 2))
agent("sized_by_the_number_of_environments", "Of which space did you take the size?",
      "The first layer has as many inputs as there are environments: you asked the batched observation_space.",
      "envs.single_observation_space.shape", finish=lambda self, D, A: (
          setattr(self, "actor", network(3, A, 0.01)), setattr(self, "critic", network(3, 1, 1.0))))


def _share_trunk(self, D, A):
    trunk = nn.Sequential(*list(self.actor)[:4])
    self.actor = nn.Sequential(*trunk, self.actor[4])
    self.critic = nn.Sequential(*trunk, self.critic[4])


agent("shared_trunk", "When the critic's loss moves its first layer, should the policy move too?",
      "Actor and critic share their hidden layers; they should be two separate networks.",
      "Build every layer twice.", finish=_share_trunk)


def _hide(self, D, A):
    networks = self.actor, self.critic
    del self.actor, self.critic
    self.__dict__.update(actor=networks[0], critic=networks[1])


agent("networks_not_registered", "Does agent.parameters() find all weights?",
      "The networks are not registered as submodules, so an optimizer will not find their weights.",
      "self.actor = nn.Sequential(...), after super().__init__().", finish=_hide)


def _without_bias(self, D, A):
    for net in (self.actor, self.critic):
        for module in net:
            if isinstance(module, nn.Linear):
                module.register_parameter("bias", None)


agent("no_biases", "What can a layer without a bias say about an observation of zeros?",
      "The linear layers have no biases.",
      "nn.Linear(a, b), with its bias, set to 0.", finish=_without_bias)


# ContinuousAgent ------------------------------------------------------------------------------------------------------

def continuous(name, nudge, pointer, answer, actor=None, log_std=None):
    """Registers a wrong ContinuousAgent. log_std: (agent, A) sets it."""
    def __init__(self, envs):
        nn.Module.__init__(self)
        D, A = envs.single_observation_space.shape[0], envs.single_action_space.shape[0]
        self.actor = network(**{"size_in": D, "size_out": A, "last_gain": 0.01} | (actor or {}))
        self.critic = network(D, 1, 1.0)
        if log_std:
            log_std(self, A)
        else:
            self.log_std = nn.Parameter(torch.zeros(A))
    wrong = type(name, (nn.Module,), {"__init__": __init__})
    MISTAKES.add("continuous_agent_init", nudge=nudge, pointer=pointer, answer=answer)(wrong)


continuous("std_and_not_its_log", "exp(1) is not 1. Which number is log_std, if the standard deviation is 1?",
           "log_std starts at 1: that is a standard deviation of 2.7.", "nn.Parameter(torch.zeros(action_size))",
           log_std=lambda self, A: setattr(self, "log_std", nn.Parameter(torch.ones(A))))
continuous("log_std_is_a_constant", "Will the optimizer find log_std?",
           "log_std is a plain tensor or a buffer: it is never trained.", "nn.Parameter(torch.zeros(action_size))",
           log_std=lambda self, A: setattr(self, "log_std", torch.zeros(A)))
continuous("tanh_after_the_means", "Which actions can the mean reach?",
           "The actor ends in a Tanh: its means cannot leave (-1, 1).", "End the actor with its linear layer.",
           actor={"after": (nn.Tanh(),)})
continuous("gain_of_the_means_one", "How strongly should the first actions depend on the observation?",
           "The actor's last layer has gain 1; it should have 0.01.",
           "layer_init(nn.Linear(64, action_size), row_norm=0.01)",
           actor={"last_gain": 1.0})
