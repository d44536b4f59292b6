"""The description of the HTTP interface (OpenAPI 3.1), from the messages themselves."""

import re
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import msgspec

from polyarm.service import messages as m
from polyarm.service.explain import Explanation
from polyarm.service.reports import Report

REF = "#/components/schemas/{name}"


class Operation(msgspec.Struct):
    """One thing that can be asked for."""

    method: str
    path: str
    summary: str
    scope: str | None
    answers: dict[int, Any]
    body: Any = None
    key: bool = False


EXPERIMENT = "/v1/experiments/{experiment}"
OPERATIONS = (
    Operation("get", "/v1/experiments", "Names of the experiments", "read", {200: list[str]}),
    Operation(
        "post", "/v1/experiments", "Add an experiment", "admin", {201: m.ExperimentSettings}, m.ExperimentSettings
    ),
    Operation("get", EXPERIMENT, "Settings of an experiment", "read", {200: m.ExperimentSettings}),
    Operation("patch", EXPERIMENT, "Change an experiment", "admin", {200: m.ExperimentSettings}, m.ExperimentPatch),
    Operation("post", EXPERIMENT + "/arms", "Add an arm", "admin", {202: m.ArmRequest}, m.ArmRequest),
    Operation("post", EXPERIMENT + "/arms/{arm}:retire", "Play an arm no more", "admin", {200: m.ArmRequest}),
    Operation("post", EXPERIMENT + "/arms/{arm}:pause", "Play an arm no more for now", "admin", {200: m.ArmRequest}),
    Operation("post", EXPERIMENT + "/arms/{arm}:resume", "Play a paused arm again", "admin", {200: m.ArmRequest}),
    Operation(
        "post", EXPERIMENT + "/decisions", "Decide", "decide", {201: m.DecisionAnswer}, m.DecisionRequest, key=True
    ),
    Operation(
        "post",
        EXPERIMENT + "/decisions/batch",
        "Decide many times on one snapshot",
        "decide",
        {201: m.BatchAnswer},
        m.BatchRequest,
        key=True,
    ),
    Operation("get", EXPERIMENT + "/report", "The experiment in numbers", "read", {200: Report}),
    Operation("get", EXPERIMENT + "/snapshots", "The newest snapshots", "read", {200: list[dict[str, Any]]}),
    Operation(
        "post",
        EXPERIMENT + ":rollback",
        "Go on from an older snapshot",
        "admin",
        {202: m.RollbackRequest},
        m.RollbackRequest,
    ),
    Operation("post", EXPERIMENT + ":pause", "Take no more decisions", "admin", {200: m.StatusAnswer}),
    Operation("post", EXPERIMENT + ":resume", "Take decisions again", "admin", {200: m.StatusAnswer}),
    Operation(
        "post",
        "/v1/rewards",
        "Report one reward, or up to 1000",
        "reward",
        {200: m.RewardsAnswer, 202: m.RewardsAnswer, 404: m.RewardsAnswer, 409: m.RewardsAnswer},
        m.Rewards,
    ),
    Operation("get", "/v1/decisions/{decision}/explain", "Make a decision again", "read", {200: Explanation}),
    Operation("get", "/healthz", "Whether the process lives", None, {200: m.StatusAnswer}),
    Operation("get", "/readyz", "Whether it can decide and write", None, {200: m.StatusAnswer, 503: m.ErrorAnswer}),
)

ERRORS = {
    400: "The body is not JSON",
    401: "No key, or one that is not in use",
    403: "The key lacks the scope",
    404: "There is no such experiment, decision or snapshot",
    409: "It contradicts what is recorded",
    413: "The body is too long",
    422: "A field breaks its rule, which the answer names",
    429: "Too many requests; try again after Retry-After seconds",
    503: "The database cannot be written; nothing was recorded",
}


def methods_of(path: str) -> list[str]:
    """Methods that a path of the interface takes."""
    found = {operation.method.upper() for operation in OPERATIONS if _pattern(operation.path).fullmatch(path)}
    return sorted(found | ({"HEAD"} if "GET" in found else set()))


@lru_cache
def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\{(\w+)\}", lambda name: "[^/]+" if name[1] == "arm" else "[^/:]+", path))


def description(*, keys: bool = True) -> dict[str, Any]:
    """The whole interface as an OpenAPI document, of a service that asks for keys or of one that does not."""
    types = [m.ErrorAnswer]
    for operation in OPERATIONS:
        types += [*operation.answers.values(), *([operation.body] if operation.body is not None else [])]
    schemas, components = msgspec.json.schema_components(types, ref_template=REF)
    known = iter(schemas)
    error = next(known)
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        answers = {
            str(status): {"description": operation.summary, "content": {"application/json": {"schema": next(known)}}}
            for status in operation.answers
        }
        body = next(known) if operation.body is not None else None
        described = _operation(operation, answers, body, error)
        if operation.scope is not None and keys:
            described["security"] = [{"key": [operation.scope]}]
        paths.setdefault(operation.path, {})[operation.method] = described
    return {
        "openapi": "3.1.0",
        "info": {"title": "polyarm", "version": version("polyarm"), "license": {"name": "Apache-2.0"}},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }


def _operation(operation: Operation, answers: dict[str, Any], body: Any, error: Any) -> dict[str, Any]:
    for status, text in ERRORS.items():
        answers.setdefault(str(status), {"description": text, "content": {"application/json": {"schema": error}}})
    described: dict[str, Any] = {"summary": operation.summary, "responses": answers}
    parameters = [
        {"name": part.split("}")[0], "in": "path", "required": True, "schema": {"type": "string"}}
        for part in operation.path.split("{")[1:]
    ]
    if operation.key:
        schema = {"type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[\\x20-\\x7e]+$"}
        parameters.append({"name": "Idempotency-Key", "in": "header", "required": False, "schema": schema})
    if parameters:
        described["parameters"] = parameters
    if body is not None:
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    return described
