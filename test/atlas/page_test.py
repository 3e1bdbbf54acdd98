"""The pages of quipu-atlas in a real headless Chromium, from disk.

usage: page_test.py PROGRAM. Exit code 77: selenium, chromium or chromedriver is missing.
With QUIPU_SCREENSHOTS set to a folder, pictures of the pages at several widths are left there.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select
except ImportError:
    sys.exit(77)
if not shutil.which("chromium") or not shutil.which("chromedriver"):
    sys.exit(77)

PROGRAM = sys.argv.pop(1)
MODELS = ["llama3_8b", "llama3_1_8b", "llama3_2_1b"]
FOLDER = tempfile.mkdtemp()


def atlas(*arguments):
    return subprocess.run([PROGRAM, *arguments], check=True, capture_output=True, text=True).stdout


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for model in MODELS:
            atlas("--model", model, "--format", "html", "--out", f"{FOLDER}/{model}.html")
        options = Options()
        options.binary_location = shutil.which("chromium")
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                         "--window-size=1440,1000"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        cls.driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))

    @classmethod
    def tearDownClass(cls):
        cls.driver.quit()
        shutil.rmtree(FOLDER)

    def tearDown(self):
        bad = [entry["message"] for entry in self.driver.get_log("browser")]
        self.assertEqual(bad, [], "messages on the console")
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                self.assertTrue(url.startswith(("file:", "data:", "about:")), url)

    def open(self, model, address=""):
        self.driver.get("about:blank")
        self.driver.get(f"file://{FOLDER}/{model}.html#{address}")

    def width(self, width, height=1000):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})

    def card(self):
        return self.driver.find_element(By.ID, "card").text

    def shows(self, *parts):
        text = self.card()
        for part in parts:
            self.assertIn(part, text)

    def set_slider(self, name, step):
        self.driver.execute_script(
            "const e = document.getElementById(arguments[0]); e.value = arguments[1];"
            "e.dispatchEvent(new Event('input', {bubbles: true}));", name, step)

    def test_facts_of_the_attention_update(self):
        self.open("llama3_8b", "layers.N.attention.update;phase=prefill")
        self.assertEqual(self.driver.title, "Llama 3 8B · Attention update")
        self.shows("32 independent transformer blocks › Attention", "Attention update", "tensor", "self.wo(output)",
                   "The contribution of attention, at model width, that is added to the residual stream",
                   "[B batch, T positions, 4096 d]", "model.py 121–127, 189–190, 236–248 · sku_list.py 19, 188–207",
                   "Contextual evidence", "block-residuals · meta-llama/llama3 / llama/model.py", "attn-output",
                   "config · meta-llama/llama-models / models/sku_list.py", "a0940f9cf706", "0e0b8c519242",
                   "lines 236–248", "lines 121–127, 189–190", "lines 19, 188–207", "meta-llama/Llama-3-8B",
                   "Llama 3 8b model")
        self.assertIn("SOURCES 3", self.card().upper())
        self.driver.find_element(By.ID, "decode").click()
        self.shows("[B batch, 1 position, 4096 d]")

    def test_facts_of_the_vocabulary_projection(self):
        self.open("llama3_1_8b", "output;phase=prefill")
        self.assertEqual(self.driver.title, "Llama 3.1 8B · Vocabulary projection")
        self.shows("learned", "self.output(h).float()", "[B batch, T positions, 4096 d]",
                   "[B batch, T positions, 128256 vocabulary]", "float32", "525,336,576 per instance",
                   "Cast to float32 before it is returned.", "model.py 301", "Weight matrix", "4,096 × 128,256",
                   "Per-instance total", "owns a separate matrix from the token embedding table",
                   "[out, in] = [128,256, 4,096]", "no checkpoint was counted", "next token of its position",
                   "happen outside the model", "Direct evidence", "Operation context of a dependency",
                   "lines 266–269, 298–302", "lines 19, 231–248", "lines 258–262, 286–290", "50b06d251730", "0.4.13",
                   "does not pin FairScale", "use_scaled_rope: True", "llama3_1_8b", "meta-llama/Llama-3.1-8B",
                   "lm_head.weight")
        equation = self.driver.find_element(By.CSS_SELECTOR, ".equations math")
        self.assertEqual(equation.text.replace("\n", "").replace(" ", ""), "L=zWout")
        links = [a.get_attribute("href") for a in self.driver.find_elements(By.CSS_SELECTOR, ".source a")]
        self.assertIn("https://github.com/meta-llama/llama3/blob/a0940f9cf706/llama/model.py#L266-L302", links)

    def lit(self):
        return set(self.driver.execute_script(
            "return [...document.querySelectorAll('#drawing .lit')].map(e => e.dataset.light)"))

    def test_a_symbol_lights_the_map_and_the_map_lights_the_symbol(self):
        self.open("llama3_1_8b", "output")
        symbol = self.driver.find_element(By.CSS_SELECTOR, ".equations .sym[data-light='logits output']")
        ActionChains(self.driver).move_to_element(symbol).perform()
        self.assertEqual(self.lit(), {"logits", "output"})
        # The same symbol elsewhere on the card lights too.
        self.assertGreaterEqual(len(self.driver.find_elements(By.CSS_SELECTOR, "#card button.symbol.lit")), 2)
        node = self.driver.find_element(By.CSS_SELECTOR, "#drawing .node[data-light='norm']")
        ActionChains(self.driver).move_to_element(node).perform()
        self.assertEqual(self.lit(), {"norm"})
        self.assertTrue(self.driver.find_elements(By.CSS_SELECTOR, ".equations .sym.lit[data-light='norm']"))
        node.click()
        self.shows("Final norm")
        self.assertTrue(self.driver.current_url.endswith("#norm"))

    def test_sliders_give_the_librarys_numbers(self):
        for model, component in (("llama3_8b", "layers.N.attention.scaled_dot_product"), ("llama3_2_1b", "transformer"),
                                 ("llama3_1_8b", "tok_embeddings"), ("llama3_1_8b", "layers.N.feed_forward.w2")):
            self.open(model, component)
            for batch, positions, start, dtype in ((0, 0, 0, "bf16"), (3, 9, 12, "q4_k"), (8, 17, 18, "f32")):
                self.driver.find_element(By.ID, "prefill").click()
                self.set_slider("batch", batch)
                self.set_slider("positions", positions)
                self.set_slider("start", start)
                Select(self.driver.find_element(By.ID, "dtype")).select_by_value(dtype)
                at = 0 if start == 0 else 2 ** (start - 1)
                cost = json.loads(atlas("--model", model, "--component", component, "--batch", str(2 ** batch),
                                        "--positions", str(2 ** positions), "--at", str(at), "--dtype", dtype,
                                        "--format", "json"))["cost"]
                for figure in ("flops", "weight_bytes", "cache_read_bytes", "cache_write_bytes"):
                    self.shows(f"{cost['per_instance'][figure]:,}", f"{cost['total'][figure]:,}")

    def test_questions_are_answered_on_screen(self):
        self.open("llama3_8b", "layers.N.attention.wk")
        self.shows("4,194,304 per instance", "Over 8 ranks: split by output rows, [128, 4,096] a rank")
        self.open("llama3_8b", "transformer;at=4095")
        self.assertIn("KV cache 536,870,912 bytes", self.driver.find_element(By.ID, "totals").text)
        first = self.driver.find_element(By.CSS_SELECTOR, "#card a[href^='#layers.N.feed_forward']")
        self.assertIn("projection", first.text)
        self.shows("BYTES MOVED, BY OPERATION")
        self.open("llama3_2_1b", "output")
        self.shows("a shared matrix counts once, though its FLOPs happen", "1,235,814,400", "1,498,482,688")
        self.open("llama3_1_8b", "layers.N.attention.rope")
        self.shows("lines 45–62, 65–72", "rope-scaling")

    def test_comparison(self):
        self.open("llama3_8b", "transformer")
        Select(self.driver.find_element(By.ID, "compare")).select_by_value("llama3_1_8b")
        self.shows("COMPARED WITH LLAMA 3.1 8B", "use_scaled_rope", "This card is the same in both.")
        self.assertEqual(self.driver.find_element(By.ID, "changed").text, "Cards that differ: Rotary embedding.")
        self.assertIn(";with=llama3_1_8b", self.driver.current_url)

    def test_deep_links(self):
        self.open("llama3_8b", "layers.7.attention.wo;b=4;at=1024;w=q8_0")
        self.shows("Output projection", "Batch 4, 1 position from position 1,024, weights in q8_0")
        self.driver.get(f"file://{FOLDER}/llama3_8b.html#layers.N.h")
        self.shows("Residual stream after attention", "Batch 1,")
        self.driver.back()
        self.shows("Output projection")
        self.open("llama3_8b", "layers.32.h")
        self.shows("No such card")
        self.open("llama3_8b", "<img src=x onerror=document.title='broken'>")
        self.shows("No such card")
        self.open("llama3_8b", "output;b=-3;at=1e9;w=none;phase=x")
        self.shows("Batch 1, 1 position from position 0, weights in bf16")

    def test_search_by_name_and_extent_with_the_keyboard(self):
        self.open("llama3_8b")
        body = self.driver.find_element(By.TAG_NAME, "body")
        body.send_keys("/")
        box = self.driver.switch_to.active_element
        self.assertEqual(box.get_attribute("id"), "search")
        box.send_keys("14336")
        hits = [li.text for li in self.driver.find_elements(By.CSS_SELECTOR, "#results li")]
        self.assertEqual(len(hits), 5, hits)  # w1, w3, the gate and its tensor, w2
        self.assertEqual(len(set(hits)), 5)
        box.clear()
        box.send_keys("k_proj")
        box.send_keys(Keys.ENTER)
        self.shows("Key projection")
        self.driver.switch_to.active_element.send_keys("j")
        self.shows("Keys\n")
        self.driver.switch_to.active_element.send_keys("k")
        self.shows("Key projection")
        self.driver.switch_to.active_element.send_keys("p")
        self.assertEqual(self.driver.find_element(By.ID, "prefill").get_attribute("aria-checked"), "true")

    def test_the_map_by_keyboard_and_for_screen_readers(self):
        self.open("llama3_8b", "transformer")
        nodes = self.driver.find_elements(By.CSS_SELECTOR, "#drawing .node")
        self.assertGreater(len(nodes), 25)
        for node in nodes:
            self.assertEqual(node.get_attribute("tabindex"), "0")
            self.assertEqual(node.get_attribute("role"), "link")
            self.assertTrue(node.get_attribute("aria-label"))
        wo = self.driver.find_element(By.CSS_SELECTOR, "#drawing .node[data-light='layers.N.attention.wo']")
        self.driver.execute_script("arguments[0].focus()", wo)
        self.assertIn("layers.N.attention.wo", self.lit())
        wo.send_keys(Keys.ENTER)
        self.shows("Output projection")
        # Every control has a name.
        for element in self.driver.find_elements(By.CSS_SELECTOR, "button, input, select"):
            name = self.driver.execute_script(
                "const e = arguments[0]; return e.getAttribute('aria-label') || e.textContent.trim() ||"
                "(e.labels && e.labels[0] && e.labels[0].textContent.trim())", element)
            self.assertTrue(name, element.get_attribute("outerHTML"))

    def test_the_stack_folds(self):
        self.open("llama3_8b", "transformer")
        self.driver.find_element(By.ID, "unfold").click()
        self.assertFalse(self.driver.find_elements(By.CSS_SELECTOR, "#drawing [data-light='layers.N.attention.wo']"))
        self.driver.find_element(By.ID, "unfold").click()
        self.assertTrue(self.driver.find_elements(By.CSS_SELECTOR, "#drawing [data-light='layers.N.attention.wo']"))

    def test_every_card_draws_and_is_on_the_map_or_in_the_list(self):
        for model in MODELS:
            self.open(model)
            ids = [a.get_attribute("data-id") for a in self.driver.find_elements(By.CSS_SELECTOR, "#all a")]
            self.assertEqual(len(ids), 40)
            for card in ids:
                self.driver.execute_script("location.hash = arguments[0]", "#" + card)
                self.driver.execute_async_script("setTimeout(arguments[0], 0)")
                heading = self.driver.find_element(By.CSS_SELECTOR, "#card h2").text
                self.assertNotEqual(heading, "No such card", card)
                self.assertNotIn("undefined", self.card())
                self.assertNotIn("NaN", self.card())
                self.assertNotIn("[object", self.card())

    # WCAG AA: 4.5 to 1 for text, in both themes.
    def test_contrast(self):
        script = """
        const luminance = c => { const v = c.map(x => { x /= 255; return x <= .03928 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4; });
          return .2126 * v[0] + .7152 * v[1] + .0722 * v[2]; };
        const parse = s => s.match(/[\\d.]+/g).map(Number);
        const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] === 1) return c; } return [255, 255, 255]; };
        const bad = [];
        for (const e of document.querySelectorAll('body *')) {
          if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) || !e.getClientRects().length || e.closest('svg, .off, option, script, style')) continue;
          const a = luminance(parse(getComputedStyle(e).color)), b = luminance(behind(e));
          const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
          if (ratio < 4.5) bad.push(e.outerHTML.slice(0, 90) + ' ' + ratio.toFixed(2));
        }
        return bad;"""
        for address in ("output", "layers.N.attention.update", "layers.N.attention.scaled_dot_product"):
            self.open("llama3_1_8b", address)
            for _ in range(2):
                self.assertEqual(self.driver.execute_script(script), [])
                self.driver.find_element(By.ID, "theme").click()

    def test_no_width_scrolls_sideways(self):
        for width in (360, 390, 768, 1024, 1440, 2200):
            self.width(width)
            for card in ("output", "layers.N.attention.scaled_dot_product", "transformer"):
                self.open("llama3_1_8b", card)
                self.assertLessEqual(self.driver.execute_script("return document.documentElement.scrollWidth"), width)
                if os.environ.get("QUIPU_SCREENSHOTS"):
                    self.driver.save_screenshot(f"{os.environ['QUIPU_SCREENSHOTS']}/{card}-{width}.png")
        self.width(1440)

    def test_print_leaves_the_card(self):
        self.open("llama3_1_8b", "output")
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        self.assertFalse(self.driver.find_element(By.CSS_SELECTOR, "nav.map").is_displayed())
        self.assertTrue(self.driver.find_element(By.ID, "card").is_displayed())
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})

    def test_excerpts_stand_in_the_page_where_a_checkout_is_given(self):
        tree = os.path.join(FOLDER, "tree")
        os.makedirs(f"{tree}/llama")
        lines = [f"# stand-in line {i + 1}" for i in range(302)]
        lines[265] = "self.norm </script><b>"
        lines[300] = "self.output(h).float()"
        with open(f"{tree}/llama/model.py", "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        atlas("--model", "llama3_8b", "--format", "html", "--out", f"{FOLDER}/excerpts.html",
              "--source", f"meta-llama/llama3={tree}")
        self.open("excerpts", "output")
        details = self.driver.find_elements(By.CSS_SELECTOR, ".source details")
        self.assertTrue(details)
        self.assertIn("symbols confirmed", details[0].text)
        details[0].find_element(By.TAG_NAME, "summary").click()
        text = details[0].text
        self.assertIn("266  self.norm </script><b>", text)
        self.assertIn("… lines 270–297 left out …", text)
        self.assertTrue(any("Not confirmed" in d.text for d in details))


if __name__ == "__main__":
    unittest.main(verbosity=1)
