"""Which index to take, and what it will cost: counts of steps times what a step costs here."""

from lookalike.planning.planner import Plan, plan

__all__ = ["Plan", "plan"]
