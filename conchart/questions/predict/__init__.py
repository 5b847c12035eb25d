"""What if: the captured exchanges replayed under a changed set-up.

In: the tables of a trace, a :class:`Change`. Out: a :class:`Prediction`, what was measured and what is predicted side
by side. Nothing is drawn and nothing is stored here; ``docs/what-if.md`` says what is kept and what is assumed.
"""

from conchart.questions.predict.change import Change
from conchart.questions.predict.prediction import Bar, Prediction, Side, predict

__all__ = ["Bar", "Change", "Prediction", "Side", "predict"]
