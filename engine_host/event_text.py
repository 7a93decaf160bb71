"""One line of text for an event of any kind, also of one that this version does not know."""

from typing import Any

_HIDDEN = {"seq", "at", "host", "kind"}


def summary(event: dict[str, Any]) -> str:
    """What an event says, in one line."""
    match event["kind"]:
        case "engine.state":
            engine = event["engine"]
            problem = engine.get("problem") or {}
            return (
                f"{engine['name']} ({engine['id']}) {engine['state']}  {problem.get('message', '')}".rstrip()
            )
        case "engine.stage":
            stage = event["stage"]
            ended = stage.get("ended_at")
            took = f"{ended - stage['started_at']:.2f} s" if ended else "…"
            return f"{event['engine']} {stage['name']} {stage.get('detail', '')} {took}"
        case "engine.request":
            request = event["request"]
            tokens = request.get("generated_tokens")
            told = f"{tokens} tokens" if tokens is not None else ""
            return f"{request['id']} {request['model']} {request['state']} {told}".rstrip()
        case "telemetry.sample":
            return "  ".join(f"{name}={value:g}" for name, value in event["sample"]["values"].items())
        case "job.step" | "job.done":
            return _job(event["job"])
        case "host.state":
            return f"{event['state']} {event['endpoint'].get('url') or ''}".rstrip()
        case "log.line":
            lines = event["lines"]
            return f"{lines[0]['source']}: {lines[0]['text']}" + (
                f" (+{len(lines) - 1})" if len(lines) > 1 else ""
            )
        case "finding":
            return f"{event['finding']['severity']}: {event['finding']['message']}"
        case "notice":
            return f"{event['severity']}: {event['text']}"
        case "reset":
            return f"older events are gone; the newest is {event['latest']}"
        case "missed":
            return f"{event['first']} to {event['last']} were not sent"
    return "  ".join(f"{name}={value}" for name, value in event.items() if name not in _HIDDEN)


def _job(job: dict[str, Any]) -> str:
    step = job.get("step")
    text = f"{job['title']}: {job['state']}"
    if step and job["state"] == "running":
        share = f" {step['progress']:.0%}" if step.get("progress") is not None else ""
        text += f", {step['number']}/{step['of']} {step['name']}{share}"
    if job.get("error"):
        text += f" ({job['error']['message']})"
    return text
