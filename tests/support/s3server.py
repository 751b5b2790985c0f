"""A real S3 server on the loopback (moto's), a process of its own that can be killed.

Its objects are in memory, and lost when it is killed.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from typing import Any

KEYS = {"AWS_ACCESS_KEY_ID": "anyone", "AWS_SECRET_ACCESS_KEY": "anything"}


class S3Server:
    """`moto_server` on a free port, with one bucket. Requests need no credentials until `lock`."""

    def __init__(self, bucket: str = "lab") -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.uri, self.bucket = f"http://127.0.0.1:{self.port}", bucket
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """The environment of its clients; two attempts, since the default is five."""
        return {
            **KEYS,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_MAX_ATTEMPTS": "2",
            "AWS_CONFIG_FILE": "/nonexistent",
            "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
        }

    def start(self) -> None:
        """Start it unless it runs, and wait until it answers; its bucket is empty."""
        if self._process is not None:
            return
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-c", "from moto.server import main; main()"),
                *("-H", "127.0.0.1", "-p", str(self.port)),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        deadline = time.monotonic() + 60
        while not self._answers():
            assert self._process.poll() is None, "the S3 server has stopped"
            assert time.monotonic() < deadline, "the S3 server did not start within a minute"
            time.sleep(0.1)
        self.client("s3").create_bucket(Bucket=self.bucket)

    def kill(self) -> None:
        """Simulate a power failure."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(timeout=30)
            self._process = None

    def client(self, service: str) -> Any:
        import boto3

        key, secret = KEYS.values()
        return boto3.client(
            service,
            endpoint_url=self.uri,
            region_name="us-east-1",
            aws_access_key_id=key,
            aws_secret_access_key=secret,
        )

    def objects(self) -> dict[str, int]:
        """The size of each object in the bucket, by its key."""
        pages = self.client("s3").get_paginator("list_objects_v2").paginate(Bucket=self.bucket)
        return {found["Key"]: found["Size"] for p in pages for found in p.get("Contents", ())}

    def lock(self) -> dict[str, str]:
        """From now on only one user may use the bucket, whose keys are returned."""
        iam = self.client("iam")
        iam.create_user(UserName="member")
        allowed = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
        policy = {"Version": "2012-10-17", "Statement": allowed}
        iam.put_user_policy(
            UserName="member", PolicyName="store", PolicyDocument=json.dumps(policy)
        )
        key = iam.create_access_key(UserName="member")["AccessKey"]
        self._free_requests(0)
        return {
            "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
        }

    def unlock(self) -> None:
        self._free_requests(10**9)

    def _free_requests(self, number: int) -> None:
        """Answer `number` more requests, then require credentials."""
        request = urllib.request.Request(
            f"{self.uri}/moto-api/reset-auth",
            data=str(number).encode(),
            headers={"Content-Type": "application/octet-stream"},
        )
        urllib.request.urlopen(request, timeout=10).close()

    def _answers(self) -> bool:
        try:
            urllib.request.urlopen(f"{self.uri}/moto-api/", timeout=2).close()
        except OSError:
            return False
        return True
