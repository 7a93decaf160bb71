"""The state of a route's target in a word, with the tone that goes with it."""

from engine_host.protocol.endpoint.routes import TargetState

STATES = {
    TargetState.RUNS: ("runs", "good"),
    TargetState.ALLOWED: ("not asked yet", "muted"),
    TargetState.ANSWERED: ("answered", "good"),
    TargetState.FAILED: ("failed", "bad"),
    TargetState.ON_DEMAND: ("loaded when asked", "good"),
    TargetState.STARTING: ("starts", "accent"),
    TargetState.NOT_RUNNING: ("does not run", "warn"),
    TargetState.UNKNOWN: ("unknown", "bad"),
    TargetState.NOT_ALLOWED: ("may not be asked", "warn"),
    TargetState.KEY_MISSING: ("no key", "bad"),
}
