"""A headless Chromium for tests of pages; its requests do not leave this machine."""

import json
import shutil
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import psutil
from selenium import webdriver

from requirements import skip_without

_ARGUMENTS = (
    *("--headless", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run", "--no-proxy-server"),
    "--no-sandbox",  # which root has none of
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
_SECONDS = 120
_WITHIN = ("data", "chrome", "chrome-untrusted", "about", "file")


class Browser:
    """Selenium's driver, and the requests and console messages of its pages."""

    def __init__(self, driver):
        """Use a driver of Selenium that is started already."""
        self.driver = driver
        self._log: list[dict[str, Any]] = []

    def open(self, address):
        """Load a page anew, its scripts included, whatever page is shown before it.

        Of an address that is shown already, `get` may return with the old page or half of the new.
        """
        self.driver.get("about:blank")
        self.driver.get(address)
        self.wait("location.href !== 'about:blank' && document.readyState === 'complete'")

    def resize(self, width, height=900):
        """Set the size of the window, in CSS pixels."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def script(self, code, *arguments):
        """Run JavaScript in the page, and return the value of its return statement."""
        return self.driver.execute_script(code, *arguments)

    def wait(self, condition, *arguments):
        """Wait until an expression of JavaScript is true; fail after two minutes."""
        from selenium.webdriver.support.ui import WebDriverWait

        wait = WebDriverWait(self.driver, _SECONDS, poll_frequency=0.05)
        wait.until(lambda _: self.script(f"return Boolean({condition})", *arguments), condition)

    def complaints(self):
        """Return the console's messages since the last call, above all errors of scripts."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self):
        """Return the addresses of all network requests so far.

        Requests within the browser, and for files of this machine, are omitted.
        """
        for entry in self.driver.get_log("performance"):
            self._log.append(json.loads(entry["message"])["message"])
        addresses = []
        for event in self._log:
            if event["method"] == "Network.requestWillBeSent":
                address = event["params"]["request"]["url"]
                if urlsplit(address).scheme not in _WITHIN:
                    addresses.append(address)
        return addresses


@contextmanager
def chromium(folder):
    """Run Chromium until the `with` block ends; skip the test if Chromium is not installed.

    Args:
        folder: The folder for the browser's profile.

    Yields:
        The browser, which shows an empty page.
    """
    skip_without("chromium", "chromedriver")
    driver = shutil.which("chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in (*_ARGUMENTS, f"--user-data-dir={folder}", "about:blank"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    # Without this path, Selenium would search for a driver and download one.
    service = webdriver.ChromeService(executable_path=driver)
    chrome = webdriver.Chrome(options=options, service=service)
    processes = psutil.Process(service.process.pid).children(recursive=True)
    try:
        chrome.set_page_load_timeout(_SECONDS)
        chrome.set_script_timeout(_SECONDS)
        yield Browser(chrome)
    finally:
        chrome.quit()
        _, still_running = psutil.wait_procs(processes, timeout=5)
        for process in still_running:
            process.kill()
