// The course: what is done, on the page that lists the lessons.
import { button, download, element } from "./dom.js";
import { merge, read, write } from "./progress.js";
import { words } from "./words.js";

const links = [...document.querySelectorAll("article table a")].filter((link) => /\/\d\d_\w+\.html$/.test(link.pathname));
const lessons = links.map((link) => ({ link, name: link.pathname.match(/(\d\d_\w+)\.html$/)[1] }));
const box = element("section", { className: "course", ariaLabel: words.overview });
document.querySelector("article table").before(box);

function bar(done, word) {
  const meter = element("progress", { max: lessons.length, value: done, ariaLabel: word });
  return element("label", { className: "course-bar" }, element("span", { textContent: `${done} / ${lessons.length} ${word}` }), meter);
}

async function load() {
  const picker = element("input", { type: "file", accept: "application/json" });
  picker.onchange = async () => {
    merge(JSON.parse(await picker.files[0].text()));
    show();
  };
  picker.click();
}

function show() {
  const progress = read();
  const count = (what) => lessons.filter(({ name }) => progress[name]?.[what]).length;
  for (const { link, name } of lessons) {
    link.parentElement.querySelector(".course-mark")?.remove();
    const { run, passed } = progress[name] ?? {};
    const text = passed ? "✓" : run ? "◐" : "";
    const mark = element("span", { className: "course-mark", textContent: text, title: passed ? words.passed : run ? words.lessons : "" });
    link.before(mark);
  }
  const next = lessons.find(({ name }) => !progress[name]?.passed);
  const going = next
    ? element("p", {}, `${words.next} `, element("a", { href: next.link.href, textContent: next.link.textContent }))
    : element("p", { textContent: words.finished });
  const forget = () => {
    if (!confirm(words.really)) return;
    write({});
    show();
  };
  box.replaceChildren(
    element("h2", { textContent: words.overview }),
    bar(count("passed"), words.exercises),
    bar(count("run"), words.lessons),
    going,
    element(
      "div",
      { className: "cell-bar" },
      button(words.export, () => download("namoo-progress.json", "application/json", JSON.stringify(read(), null, 1)), "course-export"),
      button(words.import, load),
      button(words.forget, forget),
      element("span", { className: "cell-status", textContent: words.private }),
    ),
  );
}

show();
