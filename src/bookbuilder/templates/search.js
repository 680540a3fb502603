// The page of search: what MiniSearch finds among window.ENTRIES (bookbuilder.sphinx_site.search), as the reader types. The words
// looked for stay in the address; a result leads to its anchor, where _static/found.js marks them.
addEventListener("DOMContentLoaded", () => {
  const GREEK = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma sigma tau upsilon phi chi psi omega".split(" ");
  const SHOWN = 40; // results
  const STOP = new Set("a an and are do does for how in is it mean means of on or the to versus vs what when which why with".split(" "));
  const SAME = [
    [/\bdelta net\b/g, "deltanet"],
    [/\brank collapse\b/g, "collapse"],
    [/\b(?:eqs?|equations?)\.? (?=\d)/g, "equation "],
    [/\bhomogeni[sz]ation\b/g, "homogenized"],
    [/\b(?:gradient explosion|explod(?:ing|e) gradients?)\b/g, "gradients grow"],
    [/\b(?:kernel regression|nadaraya[- ]watson)\b/g, "kernel smoother"],
    [/\blicens(?:e|es|ing)\b/g, "licence"],
    [/^(?:cite|citing|citations?)$/g, "how to cite"],
    [/\bmistakes\b/g, "mistake"],
    [/\bover-?smoothing\b/g, "collapse"],
    [/\bkv[- ]cache\b/g, "cache"],
    [/\b(?:icl|in-context learning)\b/g, "in-context"],
    [/\b(?:ttt|test[- ]time training)\b/g, "test-time training"],
    [/\b(?:ot|earth mover'?s?|wasserstein)\b/g, "optimal transport"],
    [/\bspec(?:ulative)? dec(?:oding)?\b/g, "speculative decoding"],
    [/\b(?:ols|linear regression)\b/g, "least squares"],
    [/\b(?:ln|layer[- ]norm(?:ali[sz]ation)?)\b/g, "layernorm"],
    [/\b(?:init|initiali[sz]ation)\b/g, "initialisation"],
    [/\bvector quanti[sz]ation\b/g, "codebook"],
    [/\bmutual info(?:rmation)?\b/g, "mutual information"],
    [/\b(?:mean[- ]field|common noise)\b/g, "shared noise"],
    [/\b(?:fast weights?|linear rnn)\b/g, "linear attention"],
    [/\bhopfield\b/g, "memory"],
    [/\b(?:sgd|robbins[- ]monro)\b/g, "stochastic approximation"],
    [/\b(?:tvd?|total variation distance)\b/g, "total variation"],
    [/\bkld?\b/g, "kl divergence"],
    [/\brate[- ]distortion\b/g, "price"],
    [/\b(?:world models?|representations?)\b/g, "representation"],
    [/\bnull arm\b/g, "control"],
    [/\b(?:reproduce|replicate|re-run)\b/g, "rerun"],
  ];
  const BESIDE = [["speculative decoding", "speculative sampling"]]; // both are looked for
  const RANK = { Term: 3, Section: 1.5, Statement: 1.5, Figure: 1.2 }; // claims, exercises and pages of the book: 1
  const CHAPTER = /^notebooks\/\w+\.html(?:#in-short)?$/; // a chapter and its summary come first
  const LISTS = /^book\/(?:wrong|bibliography|evidence)\.html/; // they have every word
  const REACH = 110; // characters of an excerpt on either side
  const entries = window.ENTRIES.map(([url, kind, page, title, text], id) => ({ id, url, kind, page, title, text }));
  // 1.4 and CAC-5.a are one word each, ill-conditioned is three, and β is beta too.
  const tokenize = (text) =>
    (text.match(/[\p{L}\p{N}]+(?:[.\-_–'’][\p{L}\p{N}]+)*/gu) ?? []).flatMap((word) => {
      const parts = /\d/.test(word) ? [] : word.split(/[.\-_–'’]/);
      return parts.length > 1 ? [word, ...parts] : [word];
    });
  const processTerm = (term) => {
    const letter = term.toLowerCase().codePointAt(0) - 0x3b1;
    return term.length === 1 && GREEK[letter] ? [term.toLowerCase(), GREEK[letter]] : term.toLowerCase();
  };
  const engine = new MiniSearch({ fields: ["title", "text", "page"], tokenize, processTerm });
  engine.addAll(entries);

  const form = document.querySelector(".found-form");
  const list = document.querySelector(".found-list");
  const count = document.querySelector(".found-count");
  const make = (name, className, text) => Object.assign(document.createElement(name), { className, textContent: text });

  // What is found, and whether all words are in it.
  function find(query) {
    const asked = SAME.reduce((words, [pattern, same]) => words.replace(pattern, same), query.toLowerCase());
    const also = BESIDE.filter(([name]) => asked.includes(name)).map(([name, other]) => asked.replace(name, other));
    const phrases = [asked, ...also].map((each) => each.split(/\s+/).filter((word) => !STOP.has(word)).join(" ") || each);
    const ways = [{ fuzzy: false }, {}, { combineWith: "OR" }]; // all words as they are, with a slip, and any of them
    for (const way of asked.includes(" ") ? ways : ways.slice(0, 2)) {
      const found = phrases.flatMap((phrase) => look(phrase, query, way)).sort((a, b) => b.score - a.score);
      const first = found.filter(({ id }, at) => found.findIndex((other) => other.id === id) === at);
      if (first.length) return { found: first, all: way.combineWith !== "OR" };
    }
    return { found: [], all: true };
  }

  function look(phrase, typed, way) {
    const together = (id) => {
      const { kind, title, text, url } = entries[id];
      const name = title.toLowerCase();
      if (url.startsWith("claims/")) return 0.1; // all evidence of a chapter has every word
      if (kind === "Function") return title === typed ? 8 : 0.2; // a word of the text is looked for more often
      const place = name.startsWith(phrase) ? 8 : name.includes(phrase) ? 4 : text.toLowerCase().includes(phrase) ? 2 : 1;
      if (LISTS.test(url) && place < 4) return place / 5;
      if (name.endsWith("refuted))") && place < 8) return place / 20; // a false reading, with the words in its title
      if (CHAPTER.test(url)) return place * 4;
      return place * (url.startsWith("book/package") ? 0.5 : RANK[kind] ?? 1);
    };
    return engine.search(phrase, {
      boost: { title: 4, page: 0.3 },
      combineWith: "AND",
      prefix: (term) => term.length > 2,
      fuzzy: (term) => (term.length > 5 && !/\d/.test(term) ? 0.2 : false),
      boostDocument: together,
      ...way,
    });
  }

  // The text around the first word found, the words in bold.
  function excerpt(text, terms) {
    const words = terms.map((term) => term.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).sort((a, b) => b.length - a.length);
    const pattern = new RegExp(`(?<![\\p{L}\\p{N}])(?:${words.join("|")})(?![\\p{L}\\p{N}])`, "giu");
    const at = Math.max(text.search(pattern), 0);
    const start = at <= REACH ? 0 : text.indexOf(" ", at - REACH) + 1;
    const cut = text.slice(start, at + REACH).replace(text.length > at + REACH ? /\s\S*$/ : /$^/, "");
    const shown = make("p", "found-excerpt", start ? "… " : "");
    let last = 0;
    for (const { index, 0: word } of cut.matchAll(pattern)) {
      shown.append(cut.slice(last, index), make("mark", "", word));
      last = index + word.length;
    }
    shown.append(cut.slice(last), start + cut.length < text.length ? " …" : "");
    return shown;
  }

  function result({ id, terms }) {
    const { url, kind, page, title, text } = entries[id];
    const [address, anchor] = url.split("#");
    const link = make("a", "found-title", title);
    link.href = `${address}?q=${encodeURIComponent(form.q.value.trim())}${anchor ? `#${anchor}` : ""}`;
    const item = make("li", "");
    item.append(link, make("span", "found-where", kind === "Page" ? "" : `${kind} · ${page}`), excerpt(text, terms));
    return item;
  }

  function show() {
    const query = form.q.value.trim();
    const { found: results, all } = query ? find(query) : { found: [], all: true };
    list.replaceChildren(...results.slice(0, SHOWN).map(result));
    const more = results.length > SHOWN ? `; the first ${SHOWN} are shown` : "";
    const places = all ? `${results.length} ${results.length === 1 ? "place" : "places"}` : `No place has all of these words; ${results.length} have some of them`;
    count.textContent = !query ? "" : results.length ? places + more : `Nothing is found for “${query}”.`;
  }

  form.hidden = false;
  form.q.value = new URLSearchParams(location.search).get("q") ?? "";
  form.q.focus();
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => {
    history.replaceState(null, "", form.q.value.trim() ? `?q=${encodeURIComponent(form.q.value.trim())}` : location.pathname);
    show();
  });
  show();
});
