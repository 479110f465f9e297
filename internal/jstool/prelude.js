// The globals of a tool that the language itself does not have. It is called with functions of the host and returns
// the function that runs a tool.
(function (native) {
  "use strict";
  const stringify = JSON.stringify, parse = JSON.parse, text = String, apply = Reflect.apply, then = Promise.prototype.then;

  const define = (name, value) =>
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });

  // lazy defines names that are made together when one of them is first used.
  const lazy = (names, make) => {
    for (const name of names) {
      Object.defineProperty(globalThis, name, {
        configurable: true,
        enumerable: false,
        get() {
          const all = make();
          for (const n of names) {
            define(n, all[n]);
            const of = all[n].prototype;
            if (of && !(of instanceof Error)) Object.defineProperty(of, Symbol.toStringTag, { value: n, configurable: true });
          }
          return all[name];
        },
        set(value) {
          define(name, value);
        },
      });
    }
  };

  delete globalThis.GoError;
  Object.defineProperty(Symbol, "asyncIterator", { value: Symbol.for("Symbol.asyncIterator") });

  const show = (v) => {
    if (typeof v === "string") return v;
    if (v instanceof Error) return text(v.stack || v);
    try {
      if (typeof v === "object" && v !== null) return text(stringify(v));
      return text(v);
    } catch {
      return "a value that cannot be shown";
    }
  };
  const log = (level) => (...all) => native.log(level, all.map(show).join(" "));
  const plain = log("info");
  define("console", { log: plain, info: plain, debug: log("debug"), trace: log("debug"), warn: log("warn"), error: log("error"),
    assert(ok, ...all) { if (!ok) log("error")("Assertion failed:", ...all); },
    dir: plain, table: plain, group: plain, groupCollapsed: plain, timeLog: plain, count: plain,
    groupEnd() {}, time() {}, timeEnd() {}, countReset() {}, clear() {} });

  const callable = (fn) => {
    if (typeof fn !== "function") throw new TypeError("The callback must be a function");
    return fn;
  };
  class Timeout {
    #id;
    constructor(fn, ms, repeat, args) {
      callable(fn);
      const start = () => {
        this.#id = native.timer(() => {
          const id = this.#id;
          fn(...args);
          if (repeat && id === this.#id) start();
        }, Number(ms) || 0);
      };
      start();
      this.refresh = () => (this.close(), start(), this);
    }
    #counts = true; // only told
    ref() { return (this.#counts = true, this); }
    unref() { return (this.#counts = false, this); }
    hasRef() { return this.#counts; }
    close() {
      native.clear(this.#id);
      this.#id = 0;
      return this;
    }
    [Symbol.toPrimitive]() { return this.#id; }
  }
  const clear = (t) => void (t instanceof Timeout ? t.close() : native.clear(Number(t) || 0));
  define("setTimeout", (fn, ms, ...args) => new Timeout(fn, ms, false, args));
  define("setInterval", (fn, ms, ...args) => new Timeout(fn, ms, true, args));
  define("clearTimeout", clear);
  define("clearInterval", clear);
  define("queueMicrotask", (fn) => {
    callable(fn);
    Promise.resolve().then(fn).catch((e) => native.timer(() => { throw e; }, 0));
  });
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  define("btoa", (v) => {
    const s = text(v);
    let out = "";
    for (let i = 0; i < s.length; i += 3) {
      const [a, b, c] = [s.charCodeAt(i), s.charCodeAt(i + 1), s.charCodeAt(i + 2)];
      if (a > 255 || b > 255 || c > 255) throw new DOMException("Invalid character", "InvalidCharacterError");
      out += alphabet[a >> 2] + alphabet[((a & 3) << 4) | (b >> 4)] + (i + 1 < s.length ? alphabet[((b & 15) << 2) | (c >> 6)] : "=")
        + (i + 2 < s.length ? alphabet[c & 63] : "=");
    }
    return out;
  });
  define("atob", (v) => {
    const s = text(v).replace(/[\t\n\f\r ]/g, "").replace(/={1,2}$/, (end, at) => ((at + end.length) % 4 ? end : ""));
    if (/[^A-Za-z0-9+/]/.test(s) || s.length % 4 === 1) {
      throw new DOMException("The string to be decoded is not correctly encoded.", "InvalidCharacterError");
    }
    let out = "", bits = 0, held = 0;
    for (const c of s) {
      held = ((held << 6) | alphabet.indexOf(c)) & 0xffff;
      if ((bits += 6) >= 8) out += String.fromCharCode((held >> (bits -= 8)) & 255);
    }
    return out;
  });
  define("structuredClone", (v) => clone(v, new Map()));
  define("performance", { now: () => native.now(), timeOrigin: Date.now() });
  const add = (to, functions) => {
    for (const [name, value] of Object.entries(functions)) Object.defineProperty(to, name, { value, writable: true, configurable: true });
  };
  add(Error, { captureStackTrace: (e) => void ("stack" in e || add(e, { stack: e + new Error().stack.slice("Error".length) })) });
  const { any } = Promise;
  add(Promise, { any(list) {
    return apply(then, apply(any, this, [list]), [undefined, (e) => {
      if (e instanceof AggregateError && e.message === "") add(e, { message: "All promises were rejected" });
      throw e;
    }]);
  } });
  add(Date.prototype, { toGMTString: Date.prototype.toUTCString, getYear() { return this.getFullYear() - 1900; } });
  for (const name of ["toString", "toTimeString", Symbol.toPrimitive]) { // the zone has its name, as in Node
    const of = Date.prototype[name];
    add(Date.prototype, { [name](...hint) {
      const v = apply(of, this, hint);
      return typeof v === "string" ? v.replace("(UTC)", "(Coordinated Universal Time)") : v;
    } });
  }

  // The interpreter understands \p{…} only in patterns with an assertion.
  const NativeRegExp = RegExp;
  const construct = (pattern, flags, target) => {
    if (typeof pattern === "string" && /u/.test(flags) && /\\p\{/i.test(pattern)) {
      pattern = "(?=)" + pattern.replace(/\\(p)\{(?:Script|sc|General_Category|gc)=/gi, "\\$1{");
    }
    return Reflect.construct(NativeRegExp, [pattern, flags], target);
  };
  const Patched = function RegExp(pattern, flags) {
    return construct(pattern, flags, new.target === undefined || new.target === Patched ? NativeRegExp : new.target);
  };
  Object.setPrototypeOf(Patched, NativeRegExp);
  Patched.prototype = NativeRegExp.prototype;
  NativeRegExp.prototype.constructor = Patched;
  define("RegExp", Patched);

  lazy(["URL", "URLSearchParams"], () => {
    const escape = (s) => encodeURIComponent(s).replace(/%20/g, "+").replace(/[!'()~]/g, (c) => "%" + c.charCodeAt(0).toString(16).toUpperCase());
    const unescape = (s) => {
      const bytes = (all) => Uint8Array.from(all.match(/[0-9a-f]{2}/gi), (hex) => parseInt(hex, 16));
      return s.replace(/\+/g, " ").replace(/(?:%[0-9a-f]{2})+/gi, (all) => native.decode(bytes(all).buffer, false, true));
    };
    class URLSearchParams {
      #all = [];
      #changed = () => {};
      constructor(init = "", changed) {
        if (typeof changed === "function") this.#changed = changed;
        if (typeof init === "object" && init !== null) {
          for (const pair of Symbol.iterator in init ? init : Object.entries(init)) {
            const [name, value, ...more] = pair;
            if (more.length > 0 || [...pair].length < 2) throw new TypeError("Each query pair must be an iterable [name, value] tuple");
            this.#all.push([text(name), text(value)]);
          }
          return;
        }
        read(this, text(init));
      }
      static read(params, query) {
        params.#all = query.replace(/^\?/, "").split("&").filter((pair) => pair !== "").map((pair) => {
          const at = pair.indexOf("=");
          return at < 0 ? [unescape(pair), ""] : [unescape(pair.slice(0, at)), unescape(pair.slice(at + 1))];
        });
      }
      get size() { return this.#all.length; }
      get(name) { return this.#all.find(([n]) => n === text(name))?.[1] ?? null; }
      getAll(name) { return this.#all.filter(([n]) => n === text(name)).map(([, v]) => v); }
      has(name, value) { return this.#all.some(([n, v]) => n === text(name) && (value === undefined || v === text(value))); }
      append(name, value) {
        this.#all.push([text(name), text(value)]);
        this.#changed();
      }
      set(name, value) {
        const first = this.#all.find(([n]) => n === text(name));
        if (!first) return this.append(name, value);
        first[1] = text(value);
        this.#all = this.#all.filter((pair) => pair === first || pair[0] !== first[0]);
        this.#changed();
      }
      delete(name, value) {
        this.#all = this.#all.filter(([n, v]) => n !== text(name) || (value !== undefined && v !== text(value)));
        this.#changed();
      }
      sort() {
        this.#all.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
        this.#changed();
      }
      forEach(fn, self) { for (const [name, value] of this.#all) fn.call(self, value, name, this); }
      *keys() { for (const [name] of this.#all) yield name; }
      *values() { for (const [, value] of this.#all) yield value; }
      *entries() { for (const [name, value] of this.#all) yield [name, value]; }
      [Symbol.iterator]() { return this.entries(); }
      toString() { return this.#all.map(([name, value]) => escape(name) + "=" + escape(value)).join("&"); }
    }
    const { read } = URLSearchParams;
    delete URLSearchParams.read;
    // parseURL follows url.spec.whatwg.org for URLs that services have. base holds the parts of another URL, or is undefined.
    const special = { "http:": "80", "https:": "443", "ws:": "80", "wss:": "443", "ftp:": "21" };
    const form = /^(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?:\/\/([^/?#]*))?([^?#]*)(\?[^#]*)?(#.*)?$/;
    const encoded = (s, set) => s.replace(set, encodeURIComponent);
    const finish = (parts, path, search, hash) => {
      const out = [], all = path.split("/").slice(1);
      all.forEach((s, i) => {
        const dots = /^(?:\.|%2e){1,2}$/i.test(s);
        if (/^(?:\.|%2e){2}$/i.test(s)) out.pop();
        if (!dots || i === all.length - 1) out.push(dots ? "" : s);
      });
      if (!parts.opaque) path = path || special[parts.protocol] ? "/" + out.join("/") : "";
      return { ...parts, pathname: encoded(path, /[\0-\x20"<>`{}\x7f-\uffff]+/g), search: encoded(search === "?" ? "" : search, /[\0-\x20"<>'\x7f-\uffff]+/g),
        hash: encoded(hash === "#" ? "" : hash, /[\0-\x20"<>`\x7f-\uffff]+/g) };
    };
    const parseURL = (input, base) => {
      input = input.trim().replace(/[\t\n\r]/g, "");
      const begins = (/^[A-Za-z][A-Za-z0-9+.-]*:/.exec(input) ?? [base?.protocol ?? ""])[0].toLowerCase();
      if (special[begins] || begins === "file:") input = input.replace(/^[^?#]*/, (all) => all.replace(/\\/g, "/"));
      if (special[begins] && begins !== base?.protocol) input = input.replace(/^([^:/?#]*:)\/*/, "$1//");
      let [, scheme, authority, path, search, hash = ""] = form.exec(input);
      if (!scheme && (!base || base.opaque)) return null;
      const protocol = scheme ? scheme.toLowerCase() + ":" : base.protocol;
      if (!scheme && authority === undefined) {
        if (path === "") [path, search] = [base.pathname, search ?? base.search];
        else if (path[0] !== "/") path = base.pathname.replace(/[^/]*$/, "") + path;
        return finish(base, path, search ?? "", hash);
      }
      const parts = { protocol, username: "", password: "", hostname: "", port: "", opaque: authority === undefined };
      if (parts.opaque) return special[protocol] ? null : finish(parts, path, search ?? "", hash);
      const [, user, password, host] = /^(?:([^:]*):?(.*)@)?(.*)$/.exec(authority);
      const at = /^(\[[0-9A-Fa-f:.]+\]|[^:\s<>^|\\[\]]*)(?::(\d*))?$/.exec(host);
      if (!at || (special[protocol] && !at[1]) || Number(at[2]) > 65535) return null;
      const port = at[2] ? text(Number(at[2])) : "";
      const hostname = native.host(special[protocol] ? unescape(at[1].replace(/\+/g, "%2B")) : at[1]);
      if (special[protocol] && !hostname) return null;
      Object.assign(parts, { username: encoded(user ?? "", /[^\w.~%!$&'()*+,;=-]/g), password: encoded(password ?? "", /[^\w.~%!$&'()*+,;=-]/g),
        hostname, port: port === special[protocol] ? "" : port });
      return finish(parts, path, search ?? "", hash);
    };
    class URL {
      #parts;
      #params;
      constructor(url, base) { this.#take(text(url), base === undefined ? "" : text(base)); }
      #take(url, base) {
        const of = base ? parseURL(base) : undefined;
        const parts = base && !of ? null : parseURL(url, of);
        if (!parts) {
          const e = new TypeError("Invalid URL");
          e.code = "ERR_INVALID_URL";
          throw e;
        }
        this.#parts = parts;
        if (this.#params) read(this.#params, parts.search);
      }
      #set(name, value) {
        const old = this.#parts;
        this.#parts = { ...old, [name]: text(value) };
        try { this.#take(this.href, ""); } catch { this.#parts = old; }
      }
      static canParse(url, base) {
        try { return !!new URL(url, base); } catch { return false; }
      }
      get href() {
        const p = this.#parts;
        const user = p.username || p.password ? p.username + (p.password ? ":" + p.password : "") + "@" : "";
        return p.protocol + (p.opaque ? "" : "//" + user + this.host) + p.pathname + p.search + p.hash;
      }
      set href(v) { this.#take(text(v), ""); }
      get origin() { return this.#parts.opaque || !special[this.protocol] ? "null" : this.#parts.protocol + "//" + this.host; }
      get host() { return this.#parts.hostname + (this.#parts.port ? ":" + this.#parts.port : ""); }
      set host(v) {
        const [, name, port] = /^(.*?)(?::(\d*))?$/.exec(text(v));
        this.#parts = { ...this.#parts, port: port ?? this.#parts.port };
        this.#set("hostname", name);
      }
      get protocol() { return this.#parts.protocol; }
      set protocol(v) { this.#set("protocol", text(v).replace(/:?$/, ":")); }
      get username() { return this.#parts.username; }
      set username(v) { this.#set("username", encodeURIComponent(v)); }
      get password() { return this.#parts.password; }
      set password(v) { this.#set("password", encodeURIComponent(v)); }
      get hostname() { return this.#parts.hostname; }
      set hostname(v) { this.#set("hostname", v); }
      get port() { return this.#parts.port; }
      set port(v) { this.#set("port", v); }
      get pathname() { return this.#parts.pathname; }
      set pathname(v) { this.#set("pathname", text(v).replace(/^(?!\/)/, "/").replace(/[?#]/g, encodeURIComponent)); }
      get search() { return this.#parts.search; }
      set search(v) { this.#set("search", text(v).replace(/^(?!\?|$)/, "?").replace(/#/g, "%23")); }
      get hash() { return this.#parts.hash; }
      set hash(v) { this.#set("hash", text(v).replace(/^(?!#|$)/, "#")); }
      get searchParams() {
        return this.#params ??= new URLSearchParams(this.search, () => {
          const query = this.#params.toString();
          this.#parts = { ...this.#parts, search: query && "?" + query };
        });
      }
      toString() { return this.href; }
      toJSON() { return this.href; }
    }
    return { URL, URLSearchParams };
  });
  lazy(["crypto"], () => ({ crypto: {
    randomUUID: () => native.uuid(),
    getRandomValues(array) {
      new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(new Uint8Array(native.random(array.byteLength)));
      return array;
    },
  } }));
  const bytesOf = (v) => v instanceof ArrayBuffer ? new Uint8Array(v) : new Uint8Array(v.buffer, v.byteOffset, v.byteLength);
  const bufferOf = (v) => {
    const b = bytesOf(v);
    return b.buffer.slice(b.byteOffset, b.byteOffset + b.byteLength);
  };
  lazy(["TextEncoder", "TextDecoder"], () => ({
    TextEncoder: class TextEncoder {
      get encoding() { return "utf-8"; }
      encode(s = "") { return new Uint8Array(native.encode(text(s))); }
      encodeInto(s, to) {
        let read = 0, written = 0;
        for (const c of text(s)) {
          const bytes = this.encode(c);
          if (written + bytes.length > to.length) break;
          to.set(bytes, written);
          [read, written] = [read + c.length, written + bytes.length];
        }
        return { read, written };
      }
    },
    TextDecoder: class TextDecoder {
      #held = [];
      #began = false;
      constructor(label = "utf-8", { fatal = false, ignoreBOM = false } = {}) {
        if (!/^utf-?8$/i.test(label)) throw new RangeError("The encoding " + label + " is not supported; only utf-8 is");
        Object.assign(this, { fatal, ignoreBOM });
      }
      get encoding() { return "utf-8"; }
      decode(v = new Uint8Array(0), { stream = false } = {}) {
        const all = [...this.#held, ...bytesOf(v)];
        let whole = all.length; // without the beginning of a character that the next part completes
        for (let i = 1; stream && i <= Math.min(3, all.length); i++) {
          const first = all[all.length - i];
          if (first < 0x80 || (first >= 0xc0 && i >= (first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4))) break;
          if (first >= 0xc0) whole = all.length - i;
          if (first >= 0xc0) break;
        }
        this.#held = all.slice(whole);
        const keep = this.ignoreBOM || this.#began;
        this.#began = stream && (this.#began || whole > 0);
        const s = native.decode(Uint8Array.from(all.slice(0, whole)).buffer, this.fatal, keep);
        if (s === undefined) throw new TypeError("The encoded data was not valid for encoding utf-8");
        return s;
      }
    },
  }));

  lazy(["DOMException"], () => ({ DOMException: class DOMException extends Error {
    constructor(message = "", name = "Error") {
      super(message);
      Object.defineProperty(this, "name", { value: name, configurable: true });
      const codes = { InvalidCharacterError: 5, AbortError: 20, TimeoutError: 23, DataCloneError: 25 };
      Object.defineProperty(this, "code", { value: codes[name] ?? 0 });
    }
  } }));

  const clone = (v, seen) => {
    if (typeof v === "function" || typeof v === "symbol") throw new DOMException(text(v) + " could not be cloned.", "DataCloneError");
    if (typeof v !== "object" || v === null) return v;
    if (seen.has(v)) return seen.get(v);
    const keep = (copy) => (seen.set(v, copy), copy);
    if ([Promise, WeakMap, WeakSet].some((of) => v instanceof of)) {
      throw new DOMException("#<" + v.constructor.name + "> could not be cloned.", "DataCloneError");
    }
    if ([Boolean, Number, String, BigInt].some((of) => v instanceof of)) return keep(Object(v.valueOf()));
    if (v instanceof Date) return keep(new Date(v.getTime()));
    if (v instanceof RegExp) return keep(new RegExp(v.source, v.flags));
    if (v instanceof ArrayBuffer) return keep(v.slice(0));
    if (ArrayBuffer.isView(v)) return keep(new v.constructor(bufferOf(v)));
    if (v instanceof Map) {
      const copy = keep(new Map());
      for (const [key, value] of v) copy.set(clone(key, seen), clone(value, seen));
      return copy;
    }
    if (v instanceof Set) {
      const copy = keep(new Set());
      for (const value of v) copy.add(clone(value, seen));
      return copy;
    }
    if (v instanceof Error) {
      const copy = keep(new (globalThis[v.name] ?? Error)(v.message));
      copy.stack = v.stack;
      return copy;
    }
    const copy = keep(Array.isArray(v) ? new Array(v.length) : {});
    for (const key of Object.keys(v)) copy[key] = clone(v[key], seen);
    return copy;
  };

  lazy(["AbortController", "AbortSignal"], () => {
    class AbortSignal {
      aborted = false;
      reason = undefined;
      onabort = null;
      #listeners = new Set();
      addEventListener(type, fn) { if (type === "abort" && fn) this.#listeners.add(fn); }
      removeEventListener(type, fn) { this.#listeners.delete(fn); }
      throwIfAborted() { if (this.aborted) throw this.reason; }
      static abort(reason) {
        const c = new AbortController();
        c.abort(reason);
        return c.signal;
      }
      static timeout(ms) {
        const c = new AbortController();
        setTimeout(() => c.abort(new DOMException("The operation was aborted due to timeout", "TimeoutError")), ms);
        return c.signal;
      }
      static any(signals) {
        const c = new AbortController();
        for (const s of signals) {
          if (s.aborted) c.abort(s.reason);
          else s.addEventListener("abort", () => c.abort(s.reason));
        }
        return c.signal;
      }
      static fire(signal, reason) {
        if (signal.aborted) return;
        signal.aborted = true;
        signal.reason = reason;
        const event = { type: "abort", target: signal };
        signal.onabort?.(event);
        for (const fn of signal.#listeners) typeof fn === "function" ? fn.call(signal, event) : fn.handleEvent(event);
      }
    }
    const fire = AbortSignal.fire;
    delete AbortSignal.fire;
    class AbortController {
      signal = new AbortSignal();
      abort(reason = new DOMException("This operation was aborted", "AbortError")) { fire(this.signal, reason); }
    }
    return { AbortController, AbortSignal };
  });

  lazy(["fetch", "Headers", "Response"], () => {
    class Headers {
      #all = new Map();
      #cookies = [];
      constructor(init) {
        const pairs = init instanceof Headers || Array.isArray(init) ? init : Object.entries(init ?? {});
        for (const [name, value] of pairs) this.append(name, value);
      }
      get(name) { return this.#all.get(text(name).toLowerCase()) ?? null; }
      has(name) { return this.#all.has(text(name).toLowerCase()); }
      set(name, value) {
        if (!/^[!#$%&'*+.^`|~\w-]+$/.test(name)) throw new TypeError('"' + text(name) + '" is an invalid header name.');
        if (/[\0\r\n]/.test(text(value).trim())) throw new TypeError('"' + text(value) + '" is an invalid header value.');
        this.#all.set(text(name).toLowerCase(), text(value).trim());
      }
      append(name, value) {
        if (/^set-cookie$/i.test(name)) this.#cookies.push(text(value).trim());
        this.set(name, this.has(name) ? this.get(name) + ", " + text(value) : value);
      }
      getSetCookie() { return [...this.#cookies]; }
      delete(name) { this.#all.delete(text(name).toLowerCase()); }
      forEach(fn, self) { for (const [name, value] of this) fn.call(self, value, name, this); }
      *keys() { for (const [name] of this) yield name; }
      *values() { for (const [, value] of this) yield value; }
      entries() { return this[Symbol.iterator](); }
      *[Symbol.iterator]() { yield* [...this.#all].sort(([a], [b]) => (a < b ? -1 : 1)); }
    }
    class Response {
      #body;
      bodyUsed = false;
      redirected = false;
      type = "default";
      constructor(body, { status = 200, statusText = "", headers, url = "" } = {}) {
        this.#body = typeof body === "string" ? new TextEncoder().encode(body).buffer : body ?? new ArrayBuffer(0);
        Object.assign(this, { status, statusText, url, ok: status >= 200 && status < 300, headers: new Headers(headers) });
      }
      async arrayBuffer() {
        if (this.bodyUsed) throw new TypeError("Body is unusable: Body has already been read");
        this.bodyUsed = true;
        return bufferOf(this.#body);
      }
      clone() {
        if (this.bodyUsed) throw new TypeError("Response.clone: Body has already been consumed.");
        return new Response(bufferOf(this.#body), this);
      }
      static json(v, init = {}) {
        const headers = new Headers(init.headers);
        if (!headers.has("content-type")) headers.set("content-type", "application/json");
        return new Response(stringify(v), { ...init, headers });
      }
      async text() { return new TextDecoder().decode(await this.arrayBuffer()).replace(/^\uFEFF/, ""); }
      async json() { return parse(await this.text()); }
    }
    const fetch = (url, options = {}) => new Promise((resolve, reject) => {
      const { signal } = options;
      signal?.throwIfAborted();
      signal?.addEventListener("abort", () => reject(signal.reason));
      const headers = new Headers(options.headers), method = text(options.method ?? "GET").toUpperCase();
      let { body } = options;
      if (/^(GET|HEAD)$/.test(method) && body != null) throw new TypeError("Request with GET/HEAD method cannot have body.");
      if (body instanceof URLSearchParams && !headers.has("content-type")) {
        headers.set("content-type", "application/x-www-form-urlencoded;charset=UTF-8");
      } else if (typeof body === "string" && !headers.has("content-type")) {
        headers.set("content-type", "text/plain;charset=UTF-8");
      }
      body = body === undefined || body === null ? new ArrayBuffer(0)
        : body instanceof ArrayBuffer || ArrayBuffer.isView(body) ? bufferOf(body) : native.encode(text(body));
      const request = { method, url: text(url), headers: Object.fromEntries(headers),
        manual: options.redirect === "manual" };
      native.fetch(stringify(request), body, (head, data) => {
        const answer = parse(head);
        const headers = Object.entries(answer.headers ?? {}).flatMap(([name, values]) => values.map((value) => [name, value]));
        if (!answer.error) return resolve(new Response(data, { ...answer, headers, url: request.url }));
        const failed = new TypeError("fetch failed: " + answer.error);
        failed.cause = new Error(answer.error);
        reject(failed);
      });
    });
    return { fetch, Headers, Response };
  });

  const freeze = (v) => {
    if (typeof v === "object" && v !== null) Object.values(Object.freeze(v)).forEach(freeze);
    return v;
  };

  const failure = (e) => {
    try {
      if (typeof e === "object" && e !== null && "message" in e) {
        return stringify({
          tool: e.name === "ToolError" && typeof e.type === "string", type: text(e.type), message: text(e.message),
          retryable: e.retryable === true, partialSideEffects: e.partialSideEffects === true, details: e.details,
          suggestion: typeof e.suggestion === "string" ? e.suggestion : "", stack: text(e.stack || e),
        });
      }
      return stringify({ stack: "a value that is not an Error: " + show(e) });
    } catch {
      return '{"stack":"an error that cannot be read"}';
    }
  };

  return (tool, given) => {
    const execute = tool?.execute;
    if (typeof execute !== "function") {
      native.failed('{"stack":"handler.js exports no function execute"}');
      return;
    }
    const context = parse(given);
    freeze(context.session.state);
    context.geminiSession = null;
    context.ws = context.capabilities.messaging
      ? { readyState: 1, OPEN: 1, send: (message) => native.send(text(message)) } : null;
    const failed = (e) => native.failed(failure(e));
    const done = (result) => {
      let encoded;
      try {
        encoded = stringify(result);
      } catch (e) {
        failed(e);
        return;
      }
      native.done(encoded === undefined ? "" : encoded);
    };
    apply(then, (async () => execute(context))(), [done, failed]);
  };
})
