"""The state of a route's target in a word, with the tone that goes with it."""

from engine_host.protocol.endpoint.routes import TargetState
from engine_host.protocol.language import tr

STATES = {
    TargetState.RUNS: (tr("runs"), "good"),
    TargetState.ALLOWED: (tr("not asked yet"), "muted"),
    TargetState.ANSWERED: (tr("answered"), "good"),
    TargetState.FAILED: (tr("failed"), "bad"),
    TargetState.ON_DEMAND: (tr("loaded when asked"), "good"),
    TargetState.STARTING: (tr("starts"), "accent"),
    TargetState.NOT_RUNNING: (tr("does not run"), "warn"),
    TargetState.UNKNOWN: (tr("unknown"), "bad"),
    TargetState.NOT_ALLOWED: (tr("may not be asked"), "warn"),
    TargetState.KEY_MISSING: (tr("no key"), "bad"),
}
