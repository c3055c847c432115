// router: the fragment of the address names the view, so that a link opens the same place.

export function parse(hash) {
  const [path, query] = (hash.replace(/^#/, "") || "/runs").split("?", 2);
  const [, page, ...rest] = path.split("/");
  const parts = rest.map((part) => { try { return decodeURIComponent(part); } catch { return part; } });
  return { page: page || "runs", parts, params: Object.fromEntries(new URLSearchParams(query || "")) };
}

function address(path, params) {
  const query = new URLSearchParams(Object.entries(params || {}).filter(([, value]) => value));
  return "#" + path + (query.size ? "?" + query : "");
}

export function go(path, params) { location.hash = address(path, params); }

/** The same view under another address, without drawing it anew. */
export function note(path, params) { history.replaceState(null, "", address(path, params)); }
