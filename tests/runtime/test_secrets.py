"""Passwords, tokens and keys of addresses: the masked form of each, written by hand."""

import pytest

from bleuprint.runtime.secrets import has_secret, mask

# An address and its masked form. Every secret consists of "hush" and, in some, other characters
# inside or around it.
ADDRESSES = [
    pytest.param(
        "http://me:hush@host:5000",
        "http://***@host:5000",
        id="user and password",
    ),
    pytest.param(
        "http://me:hu@sh@host:5000",
        "http://***@host:5000",
        id="password with @",
    ),
    pytest.param(
        "http://me:hu?s#h@host",
        "http://***@host",
        id="password with ? and #",
    ),
    pytest.param(
        "http://:hush@host",
        "http://***@host",
        id="password without user",
    ),
    pytest.param(
        "//me:hush@host/path",
        "//***@host/path",
        id="no protocol",
    ),
    pytest.param(
        "postgresql://me:hush@host/db",
        "postgresql://***@host/db",
        id="PostgreSQL",
    ),
    pytest.param(
        "redis://:hush@host:6379/0",
        "redis://***@host:6379/0",
        id="Redis",
    ),
    pytest.param(
        "databricks://hush@",
        "databricks://***@",
        id="Databricks",
    ),
    pytest.param(
        "s3://AKIAHUSH:hu/sh+x@bucket/key",
        "s3://***@bucket/key",
        id="S3 key",
    ),
    pytest.param(
        "git+https://hush@github.com/a/b@main",
        "git+https://***@github.com/a/b@main",
        id="token for Git",
    ),
    pytest.param(
        "sqlite:///f.db?password=hush&mode=ro",
        "sqlite:///f.db?password=***&mode=ro",
        id="password of SQLite",
    ),
    pytest.param(
        "postgresql://host/db?user=me&sslpassword=hush",
        "postgresql://host/db?user=me&sslpassword=***",
        id="password of PostgreSQL",
    ),
    pytest.param(
        "mssql+pyodbc:///?odbc_connect=UID%3Dme%3BPWD%3Dhush",
        "mssql+pyodbc:///?odbc_connect=***",
        id="ODBC connection",
    ),
    pytest.param(
        "https://b.example/k?X-Amz-Credential=hush%2F1&X-Amz-Date=2&X-Amz-Signature=hush",
        "https://b.example/k?X-Amz-Credential=***&X-Amz-Date=2&X-Amz-Signature=***",
        id="signature of AWS",
    ),
    pytest.param(
        "https://b.example/k?AWSAccessKeyId=hush&Signature=hu%2Bsh%3D&Expires=9",
        "https://b.example/k?AWSAccessKeyId=***&Signature=***&Expires=9",
        id="access key of AWS",
    ),
    pytest.param(
        "https://a.example/k?sv=2024&sig=hu%2Fsh&se=9",
        "https://a.example/k?sv=2024&sig=***&se=9",
        id="signature of Azure",
    ),
    pytest.param(
        "https://c.example/k?Key-Pair-Id=hush",
        "https://c.example/k?Key-Pair-Id=***",
        id="key pair of CloudFront",
    ),
    pytest.param(
        "https://h.example/f?token=hush",
        "https://h.example/f?token=***",
        id="token",
    ),
    pytest.param(
        "https://h.example/f?key=hush&alt=media",
        "https://h.example/f?key=***&alt=media",
        id="key",
    ),
    pytest.param(
        "host=h password='hu sh' user=me",
        "host=h password=*** user=me",
        id="settings of PostgreSQL",
    ),
    pytest.param(
        "AWS_SECRET_ACCESS_KEY=hush",
        "AWS_SECRET_ACCESS_KEY=***",
        id="environment variable",
    ),
]
WITHOUT_SECRETS = [
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


def test_the_table_has_more_than_eighteen_addresses_and_masked_forms_without_the_secret():
    """Otherwise the tests below would check nothing."""
    assert len(ADDRESSES) > 18
    for case in ADDRESSES:
        _, masked = case.values
        assert "hush" not in masked


@pytest.mark.parametrize(("address", "masked"), ADDRESSES)
def test_the_secret_in_an_address_is_replaced_by_asterisks(address, masked):
    """The masked form is written by hand; masking it once more changes nothing."""
    assert mask(address) == masked
    assert mask(masked) == masked


@pytest.mark.parametrize(("address", "masked"), ADDRESSES)
def test_the_secret_of_an_address_in_a_message_is_replaced_by_asterisks(address, masked):
    """The rest of the message, with an @ in a path and an e-mail address, is kept."""
    message = "MLflow at {}: down; see http://host:80/@x, or ask me@example.org"

    assert mask(message.format(address)) == message.format(masked)


@pytest.mark.parametrize(("address", "masked"), ADDRESSES)
def test_an_address_with_a_user_password_or_key_has_a_secret(address, masked):
    assert has_secret(address)
    assert not has_secret(masked)


@pytest.mark.parametrize("text", WITHOUT_SECRETS)
def test_a_text_without_secrets_is_not_changed(text):
    """These texts contain @, colons and parameters, as addresses with secrets do."""
    assert mask(text) == text
    assert not has_secret(text)


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
def test_an_address_in_an_environment_variable_is_masked_as_a_whole(address, masked, monkeypatch):
    """Only the variable tells where such an address ends: its password may contain spaces.

    In the third one, the password 12/hush begins like a port. The last one has no password.
    """
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)

    assert mask(f"at {address}: down") == f"at {masked}: down"


@pytest.mark.parametrize(
    ("message", "masked"),
    [
        pytest.param(
            "at http://me:hu sh@host/x: down",
            "at http://***@host/x: down",
            id="password with a space",
        ),
        pytest.param(
            "http://a/x;http://b:hush@c,http://d",
            "http://a/x;http://***@c,http://d",
            id="last of three addresses with a password",
        ),
        pytest.param(
            "http://b:hush@c,http://d?token=hush",
            "http://***@c,http://d?token=***",
            id="password and token",
        ),
        pytest.param(
            "with url: /a?token=hush&b=1 (by X)",
            "with url: /a?token=***&b=1 (by X)",
            id="token in a path",
        ),
        pytest.param(
            "in header value: 'Bearer hush-hush\\n'",
            "in header value: 'Bearer ***\\n'",
            id="header value",
        ),
        pytest.param(
            "fatal: me:hush@host.org/x.git not found",
            "fatal: ***@host.org/x.git not found",
            id="address of Git",
        ),
        pytest.param(
            "Authorization: Bearer hush.hush-1",
            "Authorization: Bearer ***",
            id="authorization header",
        ),
        pytest.param("GET /a?jsessionid=hush&x=1", "GET /a?jsessionid=***&x=1", id="session"),
    ],
)
def test_secrets_in_messages_of_libraries_are_masked(message, masked):
    """Libraries quote addresses, parts of addresses, and HTTP headers."""
    assert mask(message) == masked
