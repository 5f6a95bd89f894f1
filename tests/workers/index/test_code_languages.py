"""The same questions of TypeScript, JavaScript, Go, Rust and Java: which chunks there are and where they lead."""

from __future__ import annotations

import pytest

from tests.workers.index.code_tree import Tree, chunks

TYPESCRIPT = {
    "web/src/api/client.ts": """
        import type { Options } from './types';
        import Logger, { level as lvl } from "../log.js";
        import * as util from '@/lib/util';

        /** Talks to the server. */
        export class Client extends Base implements Closable {
          private readonly log: Logger = new Logger();
          constructor(private readonly pool: Pool, options?: Options) { super(); lvl(); }

          /** Sends it. */
          async send(body: string): Promise<Reply> {
            this.check(body);
            const conn = new Connection(this.pool);
            await conn.write(body);
            this.pool.release();
            return util.retry(() => this.fetch<Reply>(body), onFail);
          }
          check(body: string) { return body?.trim().length; }
          #secret() { this.#secret(); }
          private fetch = async <T>(body: string): Promise<T> => { return parse(body); };
        }
        export const onFail = (error: Error) => { console.log(error); };
        export const LIMIT = 3;
        function parse(body: string) { return JSON.parse(body); }
        export class Pool {
          release() {}
        }
        class Connection {
          write(body: string) {}
        }
        export default Client;
        """,
    "web/src/api/types.ts": """
        export interface Options { retries: number; run(): void }
        export type Id = string | Options;
        export enum Kind { A, B }
        export namespace Inner {
          export function deep(): Id { return ''; }
        }
        """,
    "web/src/log.ts": "export default class Logger { info() {} }\nexport function level() {}\n",
    "web/src/lib/util/index.ts": "export { retry } from './retry';\n",
    "web/src/lib/util/retry.ts": "export async function retry<T>(f: () => T) { return f(); }\n",
    "web/src/app.tsx": """
        import Client, { Pool as P } from './api/client';
        const App = React.memo(({ title }: Props) => {
          const client = new Client(new P());
          client.send(title);
          return <Header onClick={handle} title={title} />;
        });
        function Header() { return null; }
        function handle() {}
        """,
}


def test_given_typescript_when_cut_and_resolved_then_imports_classes_and_components_are_joined() -> None:
    tree = Tree(TYPESCRIPT)
    client = "web.src.api.client"
    assert tree.symbols("web/src/api/client.ts") == [
        client, f"{client}.Client", f"{client}.Client.constructor", f"{client}.Client.send", f"{client}.Client.check",
        f"{client}.Client.secret", f"{client}.Client.fetch", f"{client}.onFail", f"{client}.parse", f"{client}.Pool",
        f"{client}.Pool.release", f"{client}.Connection", f"{client}.Connection.write",
    ]  # fmt: skip
    found = {chunk.symbol: chunk for chunk in tree.chunks}
    assert found[f"{client}.Client"].text.startswith("/** Talks to the server. */\nexport class Client")
    assert found[f"{client}.Client.send"].text.startswith("  /** Sends it. */\n  async send")
    assert {"default", "LIMIT"} - set(found[client].defines) == {"default"}
    assert "web.src.api.client.default" in found[f"{client}.Client"].defines
    assert tree.leads(f"{client}.Client.send") >= {
        f"{client}.Client.check", f"{client}.Connection", f"{client}.Connection.write", f"{client}.Pool.release",
        "web.src.lib.util.retry.retry", f"{client}.Client.fetch", f"{client}.onFail",
    }  # fmt: skip
    assert tree.leads(f"{client}.Client.constructor") >= {
        "web.src.log.level",
        f"{client}.Pool",
        "web.src.api.types.Options",
    }
    assert tree.leads(f"{client}.Client") >= {"web.src.log.Logger"}
    assert "web.src.api.types.Inner.deep" in found
    assert found["web.src.api.types.Inner.deep"].heading == "namespace Inner > function deep"
    assert "types.Options.run" in found["web.src.api.types.Options"].defines
    assert tree.leads("web.src.app.App") == {
        f"{client}.Client", f"{client}.Client.send", f"{client}.Pool", "web.src.app.Header", "web.src.app.handle",
    }  # fmt: skip


def test_given_commonjs_when_resolved_then_exports_prototypes_and_objects_are_definitions() -> None:
    tree = Tree({
        "lib/server.js": """
            var helper = require('./helper'), other = 1;
            const { format: fmt } = require('./helper');
            exports.start = function start(port) { helper.log(port); return fmt(port); };
            function Server() {}
            Server.prototype.listen = function () { this.close(); };
            Server.prototype.close = () => {};
            const api = {
              get(x) { return x; },
              put: (x) => api.get(x),
            };
            class Old { constructor() {} }
            module.exports = Server;
            """,
        "lib/helper.js": "exports.log = () => {};\nmodule.exports.format = function () {};\n",
        "lib/main.cjs": "const Server = require('./server');\nfunction run() { new Server(); start(); }\n",
    })  # fmt: skip
    assert {"lib.server.start", "lib.server.Server.listen", "lib.server.api.get", "lib.server.api.put"} <= set(
        tree.symbols("lib/server.js")
    )
    assert tree.leads("lib.server.start") == {"lib.helper.log", "lib.helper.format"}
    assert tree.leads("lib.server.Server.listen") == {"lib.server.Server.close"}
    assert tree.leads("lib.server.api.put") == {"lib.server.api.get"}
    assert tree.leads("lib.main.run") == {"lib.server"}


def test_given_go_when_resolved_then_packages_receivers_and_fields_are_followed() -> None:
    tree = Tree({
        "proj/internal/store/store.go": """
            // Package store keeps rows.
            package store

            import (
                "fmt"
                st "example.com/proj/internal/wire"
                "github.com/acme/proj/internal/log"
            )

            const (
                Limit = 3
                a, b  = 1, 2
            )

            // Store holds rows.
            type Store struct {
                conn *st.Conn
                Base
            }

            type Closer interface {
                Close(force bool) error
            }

            // Open opens it.
            func (s *Store) Open(path string, c *Cache) error {
                s.conn.Send(path)
                c.Get(path)
                x := NewCache(3)
                x.Put(path)
                y := &Cache{}
                y.Put(len(path))
                log.Trace(fmt.Sprint(path))
                go s.run(check)
                return open(path)
            }

            func (s *Store) run(f func()) {}
            """,
        "proj/internal/store/cache.go": """
            package store

            type Cache struct{ size int }

            func NewCache(size int) *Cache { return &Cache{size} }
            func (c *Cache) Get(k string) {}
            func (c *Cache) Put(k any) {}
            func open(path string) error { return nil }
            func check() {}
            """,
        "proj/internal/wire/conn.go": "package wire\n\ntype Conn struct{}\n\nfunc (c Conn) Send(p string) {}\n",
        "proj/internal/log/log.go": "package log\n\nfunc Trace(s string) {}\n",
    })  # fmt: skip
    store = "proj.internal.store"
    assert tree.symbols("proj/internal/store/store.go") == [
        store, f"{store}.Store", f"{store}.Closer", f"{store}.Store.Open", f"{store}.Store.run",
    ]  # fmt: skip
    found = {chunk.symbol: chunk for chunk in tree.chunks}
    assert found[f"{store}.Store.Open"].text.startswith("// Open opens it.\nfunc (s *Store) Open")
    assert {"store.Limit", "store.a", "store.b"} <= {key for chunk in tree.chunks for key in chunk.defines}
    assert "store.Closer.Close" in found[f"{store}.Closer"].defines
    assert tree.leads(f"{store}.Store.Open") == {
        "proj.internal.wire.Conn.Send", f"{store}.Cache", f"{store}.Cache.Get", f"{store}.NewCache",
        f"{store}.Cache.Put", "proj.internal.log.Trace", f"{store}.Store.run", f"{store}.open",
        f"{store}.Store",
    }  # fmt: skip
    assert tree.leads(f"{store}.Store") >= {"proj.internal.wire.Conn"}


def test_given_rust_when_resolved_then_use_trees_impls_and_paths_are_followed() -> None:
    tree = Tree({
        "my-crate/src/store/mod.rs": """
            //! Keeps rows.
            use crate::wire::{self, Conn as Wire, frame::*};
            use super::log::trace;
            mod cache;

            /// Holds rows.
            #[derive(Debug)]
            pub struct Store<'a> {
                conn: Arc<Wire>,
                cache: &'a cache::Cache,
            }

            impl<'a> Store<'a> {
                /// Makes one.
                pub fn new(conn: Wire) -> Self { Self { conn } }

                pub fn open(&self, path: &str) -> Result<(), Error> {
                    self.check(path)?;
                    self.conn.send(path);
                    let made = cache::Cache::new();
                    made.put(path);
                    wire::dial(path);
                    trace!("x");
                    trace(path);
                    Self::new(pack(path));
                    path.to_string().frobnicate()
                }

                fn check(&self, path: &str) {}
            }

            impl Closer for Store<'_> {
                fn close(&mut self) { let s: Store = make(); s.open("x"); }
            }

            pub trait Closer {
                fn close(&mut self);
                fn twice(&mut self) { self.close(); }
            }

            #[cfg(test)]
            mod tests {
                use super::*;
                #[test]
                fn opens() { Store::new(3).open("x"); }
            }
            """,
        "my-crate/src/store/cache.rs": """
            pub struct Cache;
            impl Cache {
                pub fn new() -> Cache { Cache }
                pub fn put(&self, k: &str) {}
            }
            """,
        "my-crate/src/wire.rs": """
            pub mod frame;
            pub struct Conn;
            impl Conn {
                pub fn send(&self, p: &str) {}
            }
            pub fn dial(p: &str) {}
            """,
        "my-crate/src/wire/frame.rs": "pub fn pack(p: &str) -> Vec<u8> { vec![] }\n",
        "my-crate/src/log.rs": "pub fn trace(p: &str) {}\n",
    })  # fmt: skip
    store = "my_crate.store"
    assert tree.symbols("my-crate/src/store/mod.rs") == [
        store, f"{store}.Store", f"{store}.Store.new", f"{store}.Store.open", f"{store}.Store.check",
        f"{store}.Store.close", f"{store}.Closer", f"{store}.Closer.twice", f"{store}.tests.opens",
    ]  # fmt: skip
    found = {chunk.symbol: chunk for chunk in tree.chunks}
    assert found[f"{store}.Store"].text.startswith("/// Holds rows.\n#[derive(Debug)]\npub struct Store")
    assert found[f"{store}.Store.close"].heading == "impl Closer for Store<'_> > method close"
    assert found[f"{store}.Store.close"].text.startswith("impl Closer for Store<'_> {\n")
    assert tree.leads(f"{store}.Store.open") == {
        f"{store}.Store.check", "my_crate.wire.Conn.send", f"{store}.cache.Cache.new", f"{store}.cache.Cache.put",
        "my_crate.wire.dial", "my_crate.log.trace", f"{store}.Store.new", "my_crate.wire.frame.pack",
    }  # fmt: skip
    assert tree.leads(f"{store}.Store.close") >= {f"{store}.Store", f"{store}.Store.open", f"{store}.Closer"}
    assert tree.leads(f"{store}.Closer.twice") == {f"{store}.Closer"}
    assert tree.leads(f"{store}.tests.opens") >= {f"{store}.Store.new", f"{store}.Store.open"}


def test_given_java_when_resolved_then_packages_fields_and_bases_are_followed() -> None:
    tree = Tree({
        "src/main/java/com/acme/db/Store.java": """
            package com.acme.db;

            import com.acme.wire.Conn;
            import static com.acme.wire.Frames.pack;
            import java.util.List;

            /** Holds rows. */
            @Service
            public class Store extends Base implements Closer {
                private final Conn conn = new Conn();
                public static final int LIMIT = 3;

                public Store(Cache cache) { super(cache); }

                /** Opens it. */
                @Override
                public void open(String path, Cache cache) throws Error {
                    check(path);
                    this.conn.send(pack(path));
                    conn.close();
                    cache.put(path);
                    var other = new Cache();
                    other.get(path).frobnicate();
                    inherited(path);
                    Helper.run(Store::check, List.of(path));
                    super.open(path);
                }

                private static void check(String path) { path.trim().length(); }

                enum Kind { A, B; void deep() {} }
            }
            """,
        "src/main/java/com/acme/db/Cache.java": """
            package com.acme.db;
            class Cache { void put(String k) {} Object get(String k) { return k; } }
            """,
        "src/main/java/com/acme/db/Base.java": """
            package com.acme.db;
            abstract class Base {
                void inherited(String p) {}
                abstract void open(String p);
            }
            """,
        "src/main/java/com/acme/db/Helper.java": """
            package com.acme.db;
            class Helper {
                static void run(Object f) {}
            }
            """,
        "src/main/java/com/acme/db/Closer.java": """
            package com.acme.db;
            public interface Closer {
                void close();
            }
            """,
        "src/main/java/com/acme/wire/Conn.java": """
            package com.acme.wire;
            public class Conn {
                public void send(byte[] b) {}
                public void close() {}
            }
            """,
        "src/main/java/com/acme/wire/Frames.java": """
            package com.acme.wire;
            public class Frames {
                public static byte[] pack(String p) { return null; }
            }
            """,
    })  # fmt: skip
    db = "com.acme.db"
    assert tree.symbols("src/main/java/com/acme/db/Store.java") == [
        db, f"{db}.Store", f"{db}.Store.Store", f"{db}.Store.open", f"{db}.Store.check", f"{db}.Store.Kind",
    ]  # fmt: skip
    found = {chunk.symbol: chunk for chunk in tree.chunks}
    assert found[f"{db}.Store"].text.startswith("/** Holds rows. */\n@Service\npublic class Store")
    assert found[f"{db}.Store.open"].text.startswith("    /** Opens it. */\n    @Override")
    assert "Kind.deep" in found[f"{db}.Store.Kind"].defines, "on one line with its class, it has no chunk of its own"
    assert tree.leads(f"{db}.Store.open") == {
        f"{db}.Store.check", "com.acme.wire.Conn.send", "com.acme.wire.Frames.pack", "com.acme.wire.Conn.close",
        f"{db}.Cache", f"{db}.Base.inherited", f"{db}.Helper.run", f"{db}.Base",
    }  # fmt: skip
    assert tree.leads(f"{db}.Store") >= {f"{db}.Base", f"{db}.Closer", "com.acme.wire.Conn"}


LISTED = {
    "a/x.ts": """
        import fp from "lodash/fp";
        @Dec() export class A<T> extends B<T> implements C { async m(@Inject() x) { foo.bar(1); } }
        export const go = async () => 1;
        """,
    "p/b_test.go": """
        package p
        import g "github.com/x/y"
        func (s *S) Do() { fmt.Println() }
        func TestDo(t *testing.T) {}
        """,
    "c/src/x.rs": """
        use std::collections::{HashMap};
        #[derive(Debug)]
        struct S { #[serde(skip)] a: u8 }
        impl T for S { fn g(&self) {} }
        #[tokio::test]
        async fn works() {}
        """,
    "s/X.java": """
        import java.util.List;
        class A extends B<T> implements d.D {
          @Override @Test public void m() {}
          abstract int n();
        }
        """,
}


@pytest.mark.parametrize(
    ("path", "imports", "definitions"),
    [
        (
            "a/x.ts", {"lodash/fp"},
            [
                ("class", "A", 3, ("Dec",), ("B", "C")), ("async method", "A.m", 3, (), ()),
                ("async function", "go", 4, (), ()),
            ],
        ),
        ("p/b_test.go", {"github.com/x/y"}, [("method", "S.Do", 4, (), ()), ("test function", "TestDo", 5, (), ())]),
        (
            "c/src/x.rs", {"std.collections.HashMap"},
            [
                ("struct", "S", 4, ("derive",), ()), ("method", "S.g", 5, (), ()),
                ("async test function", "works", 7, ("tokio.test",), ()),
            ],
        ),
        (
            "s/X.java", {"java.util.List"},
            [
                ("class", "A", 3, (), ("B", "d.D")), ("test method", "A.m", 4, ("Override", "Test"), ()),
                ("method", "A.n", 5, (), ()),
            ],
        ),
    ],
)  # fmt: skip
def test_given_a_file_of_each_language_when_cut_then_its_definitions_and_imports_are_stored_for_lists(
    path: str, imports: set[str], definitions: list[tuple[object, ...]]
) -> None:
    cut = chunks(path, LISTED[path])
    assert {name for chunk in cut for name in chunk.imports} == imports
    found = [
        (" ".join(filter(None, ("async" * one.is_async, "test" * one.test, one.kind))), one.name, one.line,
         one.decorators, one.bases)
        for chunk in cut for one in chunk.definitions or ()
    ]  # fmt: skip
    assert sorted(found, key=lambda one: (one[2], one[1])) == definitions
