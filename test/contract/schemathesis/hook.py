"""What schemathesis cannot read from openapi.yaml."""

import hashlib
import hmac
import os

import requests
import schemathesis
from schemathesis.core.failures import ServerError
from schemathesis.openapi.checks import JsonSchemaError, MissingHeaderNotRejected, RejectedPositiveData


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Keep all failures but those that are the contract's own word."""
    if isinstance(failure, ServerError):
        # A paused sale is no failure of the server. `busy` and `too_hot` would be: nothing is down here, or crowded.
        return not (response.status_code == 503 and said(response, "code") == "paused")
    if isinstance(failure, RejectedPositiveData):
        # JSON Schema counts a text's characters, the contract its bytes.
        return not (response.status_code == 400 and said(response, "detail").endswith(" bytes") and not is_ascii(case))
    if isinstance(failure, MissingHeaderNotRejected):
        # Who asks too often is told that first.
        return response.status_code != 429
    if isinstance(failure, JsonSchemaError):
        # OpenAPI 3.0 can describe a stream as a whole, a text; the tool looks for a schema of each event.
        return failure.title != "SSE event violates schema"
    return True


def said(response, member):
    try:
        return str(response.json().get(member, ""))
    except ValueError:
        return ""


def is_ascii(case):
    return all(repr(part).isascii() for part in (case.path_parameters, case.query, case.headers, case.body))


@schemathesis.hook
def before_call(context, case, kwargs):
    """Sign a payment's notice as its provider does, unless it has a signature already."""
    if case.operation.definition.raw.get("operationId") == "notifyPayment" and "X-Signature" not in (case.headers or {}):
        kwargs["auth"] = Signed(os.environ["SANDBOX_SECRET"])


class Signed(requests.auth.AuthBase):
    def __init__(self, secret):
        self.secret = secret.encode()

    def __call__(self, request):
        body = request.body or b""
        if isinstance(body, str):
            body = body.encode()
        if isinstance(body, bytes):
            request.headers["X-Signature"] = hmac.new(self.secret, body, hashlib.sha256).hexdigest()
        return request
