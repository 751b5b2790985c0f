"""Passwords, tokens and keys of addresses: the masked form of each, written by hand."""

import pytest

from bleuprint.runtime.secrets import has_secret, mask

# Every secret is, or contains, "hush", or is a part of it.
FORMS = """
http://me:hush@host:5000                         | http://***@host:5000
http://me:hu@sh@host:5000                        | http://***@host:5000
http://me:hu?s#h@host                            | http://***@host
http://:hush@host                                | http://***@host
//me:hush@host/path                              | //***@host/path
postgresql://me:hush@host/db                     | postgresql://***@host/db
redis://:hush@host:6379/0                        | redis://***@host:6379/0
databricks://hush@                               | databricks://***@
s3://AKIAHUSH:hu/sh+x@bucket/key                 | s3://***@bucket/key
git+https://hush@github.com/a/b@main             | git+https://***@github.com/a/b@main
sqlite:///f.db?password=hush&mode=ro             | sqlite:///f.db?password=***&mode=ro
postgresql://host/db?user=me&sslpassword=hush    | postgresql://host/db?user=me&sslpassword=***
mssql+pyodbc:///?odbc_connect=UID%3Dme%3BPWD%3Dhush | mssql+pyodbc:///?odbc_connect=***
https://b.example/k?X-Amz-Credential=hush%2F1&X-Amz-Date=2&X-Amz-Signature=hush | \
https://b.example/k?X-Amz-Credential=***&X-Amz-Date=2&X-Amz-Signature=***
https://b.example/k?AWSAccessKeyId=hush&Signature=hu%2Bsh%3D&Expires=9 | \
https://b.example/k?AWSAccessKeyId=***&Signature=***&Expires=9
https://a.example/k?sv=2024&sig=hu%2Fsh&se=9     | https://a.example/k?sv=2024&sig=***&se=9
https://c.example/k?Key-Pair-Id=hush             | https://c.example/k?Key-Pair-Id=***
https://h.example/f?token=hush                   | https://h.example/f?token=***
https://h.example/f?key=hush&alt=media           | https://h.example/f?key=***&alt=media
host=h password='hu sh' user=me                  | host=h password=*** user=me
AWS_SECRET_ACCESS_KEY=hush                       | AWS_SECRET_ACCESS_KEY=***
"""
TABLE = [
    tuple(map(str.strip, line.split(" | ")))
    for line in FORMS.replace("\\\n", "").strip().split("\n")
]
WITHOUT = [
    "http://host:80/@x",
    "http://[::1]:80/@x",
    "https://cdn.example/vue@3/dist",
    "http://host:8080/a@b:c",
    "sqlite:////home/me@work/a b/mlflow.db",
    "s3://bucket/a@2x.gz",
    "https://host/x?download=1&keyword=a&tokens=5&author=b",
    "train@small-own-1, dvc.yaml:train@small: by me@example.org",
    "https://docs.example: write to me@example.org",
    "params.yaml:9: tokens_per_update=3: tokenize.name=moses",
    "Could not open port: 5000; C:/x",
]


@pytest.mark.parametrize(("address", "masked"), TABLE)
def test_secrets_are_masked_alone_and_in_a_message(address, masked):
    assert "hush" not in masked and len(TABLE) > 18
    assert mask(address) == masked
    message = "MLflow at {}: down; see http://host:80/@x, or ask me@example.org"
    assert mask(message.format(address)) == message.format(masked)
    assert mask(masked) == masked
    if "=" not in address.partition("://")[0]:
        assert has_secret(address)


@pytest.mark.parametrize("text", WITHOUT)
def test_what_has_no_secret_stays_as_it_is(text):
    assert mask(text) == text


@pytest.mark.parametrize(
    ("address", "masked"),
    [
        ("http://me:hu sh@host:5000", "http://***@host:5000"),
        ("http://hu sh@host:5000/", "http://***@host:5000/"),
        ("http://me:12/hush@host:5000", "http://***@host:5000"),
        ("postgresql://h/d?password=hu sh&x=1", "postgresql://h/d?password=***&x=1"),
        ("me:hu sh@proxy:3128", "***@proxy:3128"),
        ("sqlite:////home/me@org/m.db", "sqlite:////home/me@org/m.db"),
    ],
)
def test_an_address_of_the_environment_is_known_whole(address, masked, monkeypatch):
    """With a space in its password, or a port that is the beginning of one."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    assert mask(f"at {address}: down") == f"at {masked}: down"


@pytest.mark.parametrize(
    ("message", "masked"),
    [
        ("at http://me:hu sh@host/x: down", "at http://***@host/x: down"),
        ("http://a/x;http://b:hush@c,http://d", "http://a/x;http://***@c,http://d"),
        ("http://b:hush@c,http://d?token=hush", "http://***@c,http://d?token=***"),
        ("with url: /a?token=hush&b=1 (by X)", "with url: /a?token=***&b=1 (by X)"),
        ("in header value: 'Bearer hush-hush\\n'", "in header value: 'Bearer ***\\n'"),
        ("fatal: me:hush@host.org/x.git not found", "fatal: ***@host.org/x.git not found"),
        ("Authorization: Bearer hush.hush-1", "Authorization: Bearer ***"),
        ("GET /a?jsessionid=hush&x=1", "GET /a?jsessionid=***&x=1"),
    ],
)  # fmt: skip
def test_what_libraries_say_of_an_address(message, masked):
    assert mask(message) == masked
