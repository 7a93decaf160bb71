"""One line of text for an event of any kind, also of one that this version does not know."""

from typing import Any

from engine_host.protocol.language import formed

_HIDDEN = {"seq", "at", "host", "kind"}
_LONGEST = 160
_NAMED = 5


def summary(event: dict[str, Any]) -> str:
    """Format an event in one line."""
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
            counted = ((request.get("generated_tokens"), "tokens"), (request.get("pieces"), "pieces"))
            details = next((f"{count} {name}" for count, name in counted if count is not None), "")
            return f"{request['id']} {request['model']} {request['state']} {details}".rstrip()
        case "telemetry.mark":
            return str(event["mark"]["text"])
        case "telemetry.sample":
            return "  ".join(f"{name}={value:g}" for name, value in event["sample"]["values"].items())
        case "job.step" | "job.done":
            return _job(event["job"])
        case "engine.readings":
            return _readings(event["engine"], event["readings"])
        case "patch.result":
            result = event["result"]
            detail = f": {result['detail']}" if result.get("detail") else ""
            process = f"{event['role']} {event['pid']}"
            return f"{event['engine']} {process}: {result['patch']} {result['outcome']}{detail}"
        case "patch.summary":
            return _patches(event["patches"])
        case "host.state":
            return f"{event['state']} {event['endpoint'].get('url') or ''}".rstrip()
        case "log.line":
            lines = event["lines"]
            return f"{lines[0]['source']}: {lines[0]['text']}" + (
                f" (+{len(lines) - 1})" if len(lines) > 1 else ""
            )
        case (
            "models.changed"
            | "servers.changed"
            | "routes.changed"
            | "patches.changed"
            | "presets.changed"
            | "alerts.changed"
        ):
            return f"the {event['kind'].partition('.')[0]} changed"
        case "bench.changed":
            return "the runs of the bench lab changed"
        case "on_demand.changed":
            model = event["model"]
            detail = f"  {event['detail']}" if event.get("detail") else ""
            return f"{model['name']} {event['change']}: {model['state']}{detail}"
        case "hosts.changed":
            remote = event["remote"]
            return f"{remote['name']} removed" if event.get("removed") else _remote_host(remote)
        case "hosts.question":
            question = event["question"]
            asked = "asks" if event.get("open", True) else "asks no more"
            return f"{question['host']}: ssh {asked} for {question['kind'].replace('_', ' ')}"
        case "settings.changed":
            return ", ".join(event["names"])
        case "heartbeat":
            return f"nothing new; the newest is {event['latest']}"
        case "finding":
            return f"{event['finding']['severity']}: {event['finding']['message']}"
        case "notice":
            return f"{event['severity']}: {event['text']}"
        case "reset":
            return f"older events are gone; the newest is {event['latest']}"
        case "missed":
            return f"{event['first']} to {event['last']} were not sent"
    details = "  ".join(f"{name}={_brief(value)}" for name, value in event.items() if name not in _HIDDEN)
    return details if len(details) <= _LONGEST else f"{details[: _LONGEST - 1]}…"


def _remote_host(remote: dict[str, Any]) -> str:
    return f"{remote['name']} {remote['state']}: {remote['sentence']}"


def _job(job: dict[str, Any]) -> str:
    step = job.get("step")
    text = f"{job['title']}: {job['state']}"
    if step and job["state"] == "running":
        share = f" {formed(step['progress'], '.0%')}" if step.get("progress") is not None else ""
        text += f", {step['number']}/{step['of']} {step['name']}{share}"
    if job.get("error"):
        text += f" ({job['error']['message']})"
    return text


def _readings(engine: str, readings: dict[str, Any]) -> str:
    """Format an engine's readings, as far as they were measured."""
    values = [
        f"{readings[name]:,.{digits}f} {unit}"
        for name, digits, unit in (
            ("slots_busy", 0, "streams busy"),
            ("requests_waiting", 0, "waiting"),
            ("kv_tokens", 0, "KV tokens"),
            ("prefill_rate", 0, "tokens/s read"),
            ("decode_rate", 1, "tokens/s written"),
        )
        if readings.get(name) is not None
    ]
    return f"{engine} {', '.join(values)}".rstrip()


def _patches(patches: dict[str, Any]) -> str:
    """Count the applied patches and name the failed ones; one of several processes is enough for either."""
    results = [result for process in patches.get("processes", ()) for result in process.get("results", ())]
    failed = sorted({result["patch"] for result in results if result["outcome"] == "failed"})
    applied = {result["patch"] for result in results if result["outcome"] == "applied"}.difference(failed)
    text = f"{patches['engine']} {len(applied)} {'patch' if len(applied) == 1 else 'patches'} applied"
    if not failed:
        return text
    more = f" and {len(failed) - _NAMED} more" if len(failed) > _NAMED else ""
    return f"{text}, {len(failed)} failed: {', '.join(failed[:_NAMED])}{more}"


def _brief(value: Any) -> str:
    """A value of a kind that has no sentence: what it holds is counted, not listed."""
    if isinstance(value, dict):
        name = value.get("id") or value.get("name")
        return str(name) if isinstance(name, str) else f"({len(value)} fields)"
    if isinstance(value, list):
        return ", ".join(value) if all(isinstance(one, str) for one in value) else f"({len(value)} entries)"
    return str(value).replace("\n", " ")
