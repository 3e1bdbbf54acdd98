"""The pages of quipu-atlas in a real headless Chromium, from disk.

usage: page_test.py PROGRAM. Exit code 77: selenium, chromium or chromedriver is missing.
With QUIPU_SCREENSHOTS set to a folder, pictures of the pages at several widths are left there.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import stand_in

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select
except ImportError:
    print("skipped: the Python package selenium is missing")
    sys.exit(77)
if not shutil.which("chromium") or not shutil.which("chromedriver"):
    print("skipped: chromium or chromedriver is missing")
    sys.exit(77)

PROGRAM = sys.argv.pop(1)
MODELS = ["llama3_8b", "llama3_1_8b", "llama3_2_1b"]
FOLDER = tempfile.mkdtemp()
SAMPLE = str(pathlib.Path(__file__).parent.parent / "data" / "atlas" / "stories15m.profile.json")


def atlas(*arguments):
    return subprocess.run([PROGRAM, *arguments], check=True, capture_output=True, text=True).stdout


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for model in MODELS:
            atlas("--model", model, "--format", "html", "--out", f"{FOLDER}/{model}.html")
        # A page with a counted checkpoint and a measured run, which opens at a card.
        atlas("--model", "stories15m", "--format", "html", "--out", f"{FOLDER}/measured.html", "--profile", SAMPLE,
              "--checkpoint", stand_in.write(f"{FOLDER}/stand-in"), "--component", "layers.N.attention_norm")
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

    def prefer(self, name=None, value=""):
        """What the system is said to prefer; without a name nothing."""
        features = [{"name": name, "value": value}] if name else []
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

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

    def look_up(self, text):
        """What a reader does: types into the search box and takes the first hit."""
        self.driver.find_element(By.TAG_NAME, "body").send_keys("/")
        self.driver.switch_to.active_element.send_keys(text, Keys.ENTER)

    def rows(self, title):
        """The rows of the tables of a section, as lists of cells."""
        return self.driver.execute_script("""
          const rows = [];
          let at = [...document.querySelectorAll('#card h3')].find(h => h.textContent === arguments[0]).nextElementSibling;
          for (; at && at.tagName !== 'H3'; at = at.nextElementSibling)
            for (const row of at.querySelectorAll('tbody tr')) rows.push([...row.cells].map(c => c.textContent));
          return rows;""", title)

    # Each from the page as it opens, in a few steps.
    def test_question_parameters_of_wk(self):
        self.open("llama3_8b")
        self.look_up("wk")
        self.shows("Key projection", "4,194,304 per instance", "134,217,728")

    def test_question_kv_bytes_at_4096_positions(self):
        self.open("llama3_8b")
        self.assertIn(["4,096", "536,870,912", "512.00 MiB", "1,073,741,824"], self.rows("KV cache, by positions"))
        # The same by the sliders.
        self.driver.find_element(By.ID, "prefill").click()
        self.set_slider("positions", 12)
        self.assertIn("KV cache 536,870,912 bytes", self.driver.find_element(By.ID, "totals").text)

    def test_question_why_a_tied_model_is_smaller(self):
        self.open("llama3_2_1b")
        self.shows("The output matrix is the embedding table: counted once, applied twice.",
                   "2,048 × 128,256 (the embedding table, counted above)")
        self.driver.find_element(By.CSS_SELECTOR, "#drawing .node[data-light='output']").click()
        self.shows("a shared matrix counts once, though its FLOPs happen", "1,235,814,400", "1,498,482,688")

    def test_question_what_reads_most_in_decoding(self):
        self.open("llama3_8b")
        first = self.rows("Bytes moved, by operation")[:3]
        self.assertEqual({row[0] for row in first}, {"Gate projection", "Up projection", "Down projection"})
        self.assertEqual({row[1] for row in first}, {"3,758,096,384"})
        # With a long cache attention takes the lead.
        self.set_slider("start", 18)
        self.assertEqual(self.rows("Bytes moved, by operation")[0][0], "Scaled dot-product attention")

    def test_question_where_rope_is_scaled(self):
        self.open("llama3_1_8b")
        self.look_up("rope")
        self.shows("Rotary embedding", "llama-models model.py 45-62", "rope-scaling", "lines 45–62, 65–72",
                   "models/llama3/model.py", "a9c89c471f79")
        self.open("llama3_8b")
        self.look_up("rope")
        self.shows("The frequencies are not scaled")

    def test_question_what_changes_at_model_parallel_8(self):
        self.open("llama3_8b")
        rows = {row[0]: row[1:] for row in self.rows("Over several ranks") if len(row) == 4}
        self.assertEqual(rows["attention.wk"], ["[1,024, 4,096]", "by output rows", "[128, 4,096]"])
        self.assertEqual(rows["attention.wo"], ["[4,096, 4,096]", "by input columns", "[4,096, 512]"])
        self.assertEqual(rows["norm"], ["[4,096]", "whole on every rank", "[4,096]"])
        self.shows("1,004,015,616 parameters a rank", "4 of 32 for queries, 1 of 8 for keys and values", "16,384 bytes")
        Select(self.driver.find_element(By.ID, "ranks")).select_by_value("2")
        self.shows("16 of 32 for queries", "65,536 bytes")
        self.assertIn(";mp=2", self.driver.current_url)
        self.driver.refresh()
        self.shows("16 of 32 for queries")

    def test_a_measured_run_stands_beside_the_prediction(self):
        self.open("measured", "layers.N.attention.wq")
        self.shows("MEASURED", "20 passes on AVX2, threads 2")
        rows = {row[0]: row[1:3] for row in self.rows("Measured")}
        document = json.loads(atlas("--model", "stories15m", "--component", "layers.N.attention.wq", "--profile", SAMPLE,
                                    "--format", "json"))
        self.assertEqual(rows, {label: [figure, beside] for label, figure, beside in document["measured"]["lines"]})
        # The map is shaded by the share of the time: the slowest is darkest.
        def shade(card):
            return float(self.driver.find_element(By.CSS_SELECTOR, f"#drawing [data-light='{card}'] .heat")
                         .get_attribute("fill-opacity"))
        self.assertEqual(shade("output"), 1)
        self.assertAlmostEqual(shade("layers.N.attention.wq"), 75 / 1000, 3)
        label = self.driver.find_element(By.CSS_SELECTOR, "#drawing .node[data-light='output']").get_attribute("aria-label")
        self.assertIn("1.00 ms, 45.9 % of the measured time", label)
        button = self.driver.find_element(By.ID, "heat")
        button.click()
        self.assertFalse(self.driver.find_elements(By.CSS_SELECTOR, "#drawing .heat"))
        self.assertEqual(self.driver.find_element(By.ID, "heat").get_attribute("aria-pressed"), "false")
        self.open("measured", "transformer")
        ranked = [row for row in self.rows("Measured") if len(row) == 7]
        self.assertEqual(ranked[0][:3], ["Vocabulary projection", "1.00 ms", "45.9 %"])
        self.assertEqual(len(ranked), 18)
        # A page without a run has neither.
        self.open("llama3_8b", "output")
        self.assertFalse(self.driver.find_element(By.ID, "heat").is_displayed())
        self.assertNotIn("MEASURED", self.card())

    def test_a_checkpoint_is_counted_and_drawn(self):
        self.open("measured")
        self.shows("Norm before attention", "Checked against", "1,728 parameters counted from its tensors, as the type says.")
        picture = self.driver.find_element(By.CSS_SELECTOR, "#card svg.spark")
        self.assertEqual(picture.get_attribute("role"), "img")
        self.assertEqual(picture.get_attribute("aria-label"), "By block: elements from 1 to 6, means from 1 to 6")
        details = self.driver.find_element(By.CSS_SELECTOR, "#card .sparkline + details")
        details.find_element(By.TAG_NAME, "summary").click()
        rows = self.rows("In the checkpoint")
        self.assertEqual([row[4] for row in rows], ["1", "2", "3", "4", "5", "6"])
        self.assertEqual(rows[3][0], "model.layers.3.input_layernorm.weight")
        self.open("measured", "norm")  # one tensor: its numbers, no picture
        self.assertFalse(self.driver.find_elements(By.CSS_SELECTOR, "#card svg.spark"))
        self.assertEqual(len(self.rows("In the checkpoint")), 1)

    def test_comparison(self):
        self.open("llama3_8b", "transformer")
        Select(self.driver.find_element(By.ID, "compare")).select_by_value("llama3_1_8b")
        self.shows("COMPARED WITH LLAMA 3.1 8B", "use_scaled_rope", "This card is the same in both.")
        self.assertEqual(self.driver.find_element(By.ID, "changed").text, "Cards that differ: Rotary embedding.")
        self.assertIn(";with=llama3_1_8b", self.driver.current_url)
        # On the card that differs: how. The choice stays while one walks about.
        self.driver.find_element(By.CSS_SELECTOR, "#changed a").click()
        rows = self.rows("Compared with Llama 3.1 8B")
        self.assertTrue(any(row[0] == "note" and "not scaled" in row[1] and "are scaled" in row[2] for row in rows), rows)
        self.assertIn(["use_scaled_rope", "False", "True: factor 8, bands 1 and 4, original positions 8,192"], rows)
        # Other extents: counts and shapes differ, and only what differs is listed.
        Select(self.driver.find_element(By.ID, "compare")).select_by_value("llama3_2_1b")
        self.driver.execute_script("location.hash = '#layers.N.attention.wk;with=llama3_2_1b'")
        self.driver.execute_async_script("setTimeout(arguments[0], 0)")
        rows = self.rows("Compared with Llama 3.2 1B")
        self.assertIn(["parameters of one", "4,194,304", "1,048,576"], rows)
        self.assertIn(["instances", "32", "16"], rows)
        self.assertFalse(any(row[1] == row[2] for row in rows), rows)

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

    def test_every_part_has_a_name_and_a_place(self):
        """As a screen reader gets it: Chromium's own accessibility tree."""
        for page in ("llama3_8b", "measured"):
            self.open(page, "transformer")
            tree = self.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
            named = {}
            for node in tree:
                if node.get("ignored"):
                    continue
                role, name = node["role"]["value"], node.get("name", {}).get("value", "")
                named.setdefault(role, []).append(name)
                if role in ("button", "link", "slider", "combobox", "searchbox", "radio", "radiogroup", "navigation",
                            "region", "img", "MathMLMath"):
                    self.assertTrue(name or role == "MathMLMath", node)
            for landmark in ("banner", "main", "navigation", "contentinfo"):
                self.assertEqual(len(named[landmark]), 1, landmark)
            self.assertEqual(named["slider"], ["Batch B", "Positions T", "Cached positions"])
            self.assertIn("Output projection, learned", " | ".join(named["link"]))
        headings = [h.tag_name for h in self.driver.find_elements(By.CSS_SELECTOR, "h1, h2, h3, h4")]
        self.assertEqual(headings[:2], ["h1", "h2"])
        self.assertEqual(set(headings[2:]), {"h3"})

    def test_the_whole_page_by_the_tab_key(self):
        self.open("llama3_8b", "layers.N.attention.wk")
        seen = []
        for _ in range(45):
            ActionChains(self.driver).send_keys(Keys.TAB).perform()
            seen.append(self.driver.execute_script(
                "const e = document.activeElement; return e.id || e.dataset.light || e.className || e.tagName"))
        order = ["skip", "search", "compare", "theme", "decode", "batch", "start", "dtype", "unfold"]
        places = [seen.index(name) for name in order]
        self.assertEqual(places, sorted(places), seen)
        nodes = self.driver.find_elements(By.CSS_SELECTOR, "#drawing .node")
        first = seen.index("unfold") + 1  # each node of the map once, no edge; then on
        self.assertEqual(seen[first:first + len(nodes)], [n.get_attribute("data-light") for n in nodes])
        self.assertEqual(seen[first + len(nodes)], "SUMMARY")
        self.open("llama3_8b", "layers.N.attention.wk")
        ActionChains(self.driver).send_keys(Keys.TAB, Keys.ENTER).perform()
        self.assertEqual(self.driver.switch_to.active_element.get_attribute("id"), "card")

    def test_nothing_moves_for_whoever_wants_it_still(self):
        script = """return [...document.querySelectorAll('*')].filter(e => {
          const s = getComputedStyle(e); return parseFloat(s.transitionDuration) > 0 || s.animationName !== 'none'; }).length"""
        self.open("llama3_8b", "output")
        for wish, moves in (("reduce", False), ("no-preference", True)):
            self.prefer("prefers-reduced-motion", wish)
            self.assertEqual(self.driver.execute_script(script) > 0, moves, wish)
        self.prefer()

    def test_the_theme_is_the_systems_until_it_is_chosen(self):
        ground = "return getComputedStyle(document.body).backgroundColor"
        self.open("llama3_8b", "output")
        light = self.driver.execute_script(ground)
        self.prefer("prefers-color-scheme", "dark")
        self.open("llama3_8b", "output")
        dark = self.driver.execute_script(ground)
        self.assertNotEqual(light, dark)
        self.driver.find_element(By.ID, "theme").click()
        self.assertEqual(self.driver.execute_script(ground), light)
        self.prefer()

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
        const over = (top, part, below) => below.map((x, i) => part * top[i] + (1 - part) * x);
        const bad = [];
        // In the map a label stands on its node, which may be shaded.
        for (const t of document.querySelectorAll('#drawing text')) {
          const shape = t.parentElement.querySelector(':scope > rect, :scope > circle'), heat = t.parentElement.querySelector(':scope > .heat');
          let ground = shape && getComputedStyle(shape).fill !== 'none' ? parse(getComputedStyle(shape).fill) : behind(t.closest('nav'));
          if (heat) ground = over(parse(getComputedStyle(heat).fill), +heat.getAttribute('fill-opacity'), ground.slice(0, 3));
          const a = luminance(parse(getComputedStyle(t).fill)), b = luminance(ground), ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
          if (ratio < 4.5) bad.push(t.textContent + ' ' + ratio.toFixed(2));
        }
        for (const e of document.querySelectorAll('body *')) {
          if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) || !e.getClientRects().length || e.closest('svg, .off, option, script, style')) continue;
          const a = luminance(parse(getComputedStyle(e).color)), b = luminance(behind(e));
          const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
          if (ratio < 4.5) bad.push(e.outerHTML.slice(0, 90) + ' ' + ratio.toFixed(2));
        }
        return bad;"""
        # Without transitions: half of the way from one theme to the other is not judged.
        self.prefer("prefers-reduced-motion", "reduce")
        for page, address in (("llama3_1_8b", "output"), ("llama3_1_8b", "layers.N.attention.update"),
                              ("llama3_1_8b", "layers.N.attention.scaled_dot_product"), ("measured", "transformer"),
                              ("measured", "layers.N.attention_norm"), ("llama3_8b", "transformer;with=llama3_2_1b")):
            self.open(page, address)
            for _ in range(2):
                self.assertEqual(self.driver.execute_script(script), [])
                self.driver.find_element(By.ID, "theme").click()
        self.prefer()

    def test_no_width_scrolls_sideways(self):
        for width in (360, 390, 768, 1024, 1440, 2200):
            self.width(width)
            for page, card in (("llama3_1_8b", "output"), ("llama3_1_8b", "layers.N.attention.scaled_dot_product"),
                               ("measured", "transformer"), ("measured", "layers.N.attention_norm")):
                self.open(page, card)
                self.assertLessEqual(self.driver.execute_script("return document.documentElement.scrollWidth"), width)
                if os.environ.get("QUIPU_SCREENSHOTS"):
                    self.driver.save_screenshot(f"{os.environ['QUIPU_SCREENSHOTS']}/{card}-{width}.png")
        self.width(1440)

    def test_print_leaves_the_card_dark_on_white(self):
        self.open("llama3_1_8b", "output")
        self.driver.execute_script("document.documentElement.dataset.theme = 'dark'")
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        self.assertFalse(self.driver.find_element(By.CSS_SELECTOR, "nav.map").is_displayed())
        self.assertTrue(self.driver.find_element(By.ID, "card").is_displayed())
        colours = self.driver.execute_script(
            "return ['#card', '#card h3', '.note.where'].map(s => getComputedStyle(document.querySelector(s)).color)")
        for colour in colours:
            self.assertLess(max(int(x) for x in colour[4:-1].split(", ")), 128, colours)
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
