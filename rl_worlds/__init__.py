"""The rooms behind rl_envs.py: environments that step together.

same_step        what all of them share: seeding, action checks, time limit, autoreset, episode statistics
robots           MuJoCo locomotion on threads, one MjData per environment
cartpole         CartPole in numpy
gymnasium_envs   every other environment, by Gymnasium's SyncVectorEnv
normalize        running normalisation of observations and rewards
"""
