"""A headless Chromium that tests look at pages with, by the DevTools protocol over a pipe; the standard library alone."""

import base64
import json
import os
import select
import shutil
import subprocess
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = """--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --hide-scrollbars --mute-audio
    --autoplay-policy=no-user-gesture-required --remote-debugging-pipe""".split()


class Browser:
    """One page at a time. problems: what it has said on its console since it was opened: errors, warnings, exceptions."""

    def __init__(self, program, folder):
        ours, theirs = os.pipe(), os.pipe()  # what the browser reads as 3, and writes as 4
        self._write, self._read = ours[1], theirs[0]

        def number():
            os.dup2(ours[0], 63)
            os.dup2(theirs[1], 64)
            os.dup2(63, 3)
            os.dup2(64, 4)

        self.process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={folder}", "about:blank"],
            preexec_fn=number,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(ours[0])
        os.close(theirs[1])
        self._number, self._rest, self._session, self.problems, self._loaded = 0, b"", None, [], False
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._ask(f"{domain}.enable")

    def open(self, path, width=1400, height=1000, dark=False):
        """Load the page of a file, and let it draw what it draws once its size is known."""
        self.problems.clear()
        self._ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._ask("Emulation.setEmulatedMedia", features=[scheme])
        self._loaded = False
        self._ask("Page.navigate", url=path.resolve().as_uri())
        self.wait(lambda: self._loaded)
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def run(self, script):
        """The value of a JavaScript expression, of a promise what it resolves to."""
        found = self._ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, key):
        self._ask("Input.dispatchKeyEvent", type="keyDown", key=key, text=key)
        self._ask("Input.dispatchKeyEvent", type="keyUp", key=key)

    def click(self, selector, x=0.5, y=0.5):
        """Press the mouse where the first such element is shown, at shares of its width and height."""
        place = f"""(() => {{ const it = document.querySelector({json.dumps(selector)}); it.scrollIntoView({{block: "center"}});
            const box = it.getBoundingClientRect(); return [box.x + {x} * box.width, box.y + {y} * box.height]; }})()"""
        left, top = self.run(place)
        for kind in ("mousePressed", "mouseReleased"):
            self._ask("Input.dispatchMouseEvent", type=kind, x=left, y=top, button="left", clickCount=1)

    def picture(self, path, whole=False):
        """Write a PNG of what is seen, or of the whole page."""
        found = self._ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))

    def wait(self, done, seconds=30):
        """Let the page go on until done() is true."""
        until = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < until, f"still not so after {seconds} s"
            self._take(0.05)

    def close(self):
        os.close(self._write)
        self.process.terminate()
        self.process.wait(20)
        os.close(self._read)

    def _ask(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        while True:
            found = self._take(60)
            assert found is not None, f"no answer to {method}"
            if found.get("id") == self._number:
                assert "error" not in found, found["error"]
                return found["result"]

    def _take(self, seconds):
        """The next message, of which events are noted; None where none comes."""
        while b"\0" not in self._rest:
            if not select.select([self._read], [], [], seconds)[0]:
                return None
            block = os.read(self._read, 1 << 16)
            assert block, "the browser has ended"
            self._rest += block
        line, _, self._rest = self._rest.partition(b"\0")
        message = json.loads(line)
        kind, said = message.get("method"), message.get("params")
        if kind == "Page.loadEventFired":
            self._loaded = True
        elif kind == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(said["exceptionDetails"]))
        elif kind == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
            self.problems.append(said["entry"]["text"])
        elif kind == "Runtime.consoleAPICalled" and said["type"] in ("error", "warning", "assert"):
            self.problems.append(json.dumps(said["args"]))
        return message


def find_browser():
    """The program, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def missing():
    """Why there is no browser, or None. Where PYSPEECH_TEST_CHROMIUM=required that is an error."""
    if find_browser():
        return None
    assert os.environ.get("PYSPEECH_TEST_CHROMIUM") != "required", "PYSPEECH_TEST_CHROMIUM=required, and there is no Chromium"
    return "there is no Chromium"


PLAYED = """(async () => {
    const sound = document.querySelector("audio");
    sound.muted = true;
    await sound.play();
    for (let tries = 0; tries < 100 && !(sound.currentTime > 0.02); tries++) await new Promise((done) => setTimeout(done, 50));
    sound.pause();
    return [sound.currentTime > 0.02, sound.duration > 0];
})()"""
# Each filter to each of its values: [how many examples it leaves].
FILTERED = """[...document.querySelectorAll("select[data-key]")].map((select) => {
    const before = select.value, box = select.closest(".examples");
    const counts = [...select.options].map((option) => {
        select.value = option.value;
        select.dispatchEvent(new Event("change", {bubbles: true}));
        return [...box.querySelectorAll(".example")].filter((card) => !card.hidden).length;
    });
    select.value = before;
    select.dispatchEvent(new Event("change", {bubbles: true}));
    return counts;
})"""
SLID = """[...document.querySelectorAll(".threshold")].map((box) => {
    const slider = box.querySelector("input");
    const shown = () => [...box.querySelectorAll("td[data-column], .at")].map((cell) => cell.textContent).join();
    const seen = new Set([shown()]);
    for (const value of [slider.min, slider.max]) {
        slider.value = value;
        slider.dispatchEvent(new Event("input"));
        seen.add(shown());
    }
    return seen.size;
})"""


def check_page(browser, page, pictures, sliders):
    """A report page on a screen and on a phone, in the light and in the dark: nothing goes wrong, nothing is too wide; audio
    plays, filters and sliders change what is shown. sliders: whether it has any."""
    for width, dark in ((1400, False), (400, True)):
        browser.open(page, width=width, dark=dark)
        assert browser.run("document.documentElement.scrollWidth") <= width
        browser.picture(pictures / f"{width}.png", whole=True)
    assert browser.run("[...document.querySelectorAll('audio')].length") > 0
    assert browser.run(PLAYED) == [True, True]
    filtered = browser.run(FILTERED)
    assert filtered and all(max(counts) > 0 for counts in filtered), filtered
    moved = browser.run(SLID)
    assert bool(moved) == sliders and all(count > 1 for count in moved)
    assert browser.run("typeof hostile") == "undefined"
    assert browser.problems == []
