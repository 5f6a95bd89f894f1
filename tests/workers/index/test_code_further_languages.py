"""Questions of C, C++, C#, Kotlin, Ruby, PHP, shell and SQL: which definitions there are and where they lead."""

from __future__ import annotations

import pytest

from tests.workers.index.code_tree import Tree, chunks

C = """
    #include "util.h"
    #include <stdio.h>
    #ifdef GUARD
    int other(void);
    #endif
    /* A list. */
    typedef struct node { int x; struct node *next; } node_t;
    enum color { RED, GREEN };
    /* Adds one. */
    static node_t *
    add_node(node_t *head, int x)
    {
        node_t *n = make_node(x);
        head->ops->attach(n);
        return n;
    }
    #ifdef FAST
    void only_fast(void) { add_node(0, 1); }
    #else
    void only_slow(void) {}
    #endif
    """
CPP = """
    #include "net/client.hpp"
    #define SQUARE(x) ((x)*(x))
    namespace acme { namespace store {
    /// Keeps things.
    template <typename T>
    class Store : public Base<T>, private detail::Mixin {
    public:
      explicit Store(Client c) : client_(c) {}
      Reader open(const std::string& path);
      T* get() const { return helper(client_); }
    private:
      Client client_;
    };
    // Opens it.
    template <typename T>
    Reader Store<T>::open(const std::string& path) {
      client_.transmit(path);
      acme::util::run(path);
      return new Reader(path);
    }
    struct Client { void transmit(const std::string& path) {} };
    }}
    extern "C" { int c_api(void) { return 1; } }
    static int *helper(int a) { return new int(a); }
    """
CSHARP = """
    using System;
    using Acme.Net;
    using Log = Acme.Logging.Logger;
    namespace Acme.Stores
    {
        /// <summary>Keeps things.</summary>
        public class Store<T> : Base, IDisposable
        {
            private readonly Client client = new Client();
            public Store(Client c) { Log.Note(c); }
            [Fact]
            public async Task<Reader> Open(string path)
            {
                var reader = new Reader(path);
                Check(path);
                await client.Transmit(path);
                return reader.Peruse();
            }
            static void Check(string p) { }
        }
        public interface IStore { void Shut(); }
        public class Reader { public Reader Peruse() => this; }
    }
    """
KOTLIN = """
    package com.acme.store
    import com.acme.net.Client
    import com.acme.log.Logger as Log
    /** Keeps things. */
    class Store(private val client: Client) : Base(1), Closeable {
        companion object {
            fun make(): Store = Store(Client())
        }
        /** Opens it. */
        override suspend fun open(path: String): Reader {
            val reader = Reader(path)
            client.transmit(path)
            return reader.peruse()
        }
        @Test
        fun testOpen() {
            Log(1)
        }
    }
    interface Closeable {
        fun shut()
    }
    class Reader(val path: String) {
        fun peruse() = this
    }
    enum class Kind { A, B }
    """
RUBY = """
    require 'json'
    require_relative '../util/helper'
    # Things.
    module Acme
      class Store < Base::Thing
        include Loud
        MAX = 3
        def initialize(client)
          @client = Client.new(client)
        end
        # Opens it.
        def unlock(path)
          reader = Reader.new(path)
          @client.transmit(path)
          check(path)
          reader.peruse
        end
        def self.make; new(1); end
        class << self
          def other; end
        end
        private
        def check(p) = p.strip
      end
      class Client
        def transmit(path); end
      end
      class Reader
        def peruse; end
      end
      module Loud; end
    end
    def top_level; helper 3; end
    """
PHP = """<?php
    namespace App\\Models;
    use App\\Net\\Client;
    use App\\Util\\{Helper, Other as O};
    use function App\\Util\\assist;
    require_once 'x/y.php';
    /** Keeps things. */
    #[Attr]
    class Store extends Base implements Closable {
        use SoftDeletes;
        const MAX = 3;
        private Client $client;
        public function __construct(private Logger $log) { $this->log->note(); }
        /** Opens it. */
        public function open(string $path): Reader {
            $r = new Reader($path);
            $this->check($path);
            $this->client->transmit($path);
            Helper::run($r);
            return assist($r->peruse());
        }
        private function check($p) { return strlen($p); }
    }
    interface Closable { public function shut(); }
    class Reader { public function peruse() {} }
    """
SHELL = """
    #!/bin/bash
    source ./lib/util.sh
    . "$DIR/other.sh"
    # Builds it.
    build() {
      local x=$(compute "$1")
      run_it "$x" | filter_it
    }
    function deploy { build; }
    build "$@"
    """
SQL = """
    -- Who may log in.
    CREATE TABLE app.users (
      id INTEGER PRIMARY KEY,
      org_id INTEGER REFERENCES orgs(id)
    );
    CREATE TABLE orgs (id INTEGER);
    CREATE INDEX users_name ON app.users (name);
    CREATE VIEW active AS SELECT u.id FROM app.users u JOIN orgs o ON o.id = u.org_id;
    CREATE OR REPLACE FUNCTION total(x integer) RETURNS integer AS $$
    BEGIN
      RETURN (SELECT count(*) FROM active);
    END;
    $$ LANGUAGE plpgsql;
    """
#: File -> its source, the symbols of its chunks, and (symbol, symbols that it leads to).
FILES: dict[str, tuple[str, list[str], dict[str, set[str]]]] = {
    "src/list.c": (
        C,
        [
            "src.list",
            "src.list.node_t",
            "src.list.color",
            "src.list.add_node",
            "src.list.only_fast",
            "src.list.only_slow",
        ],
        {"src.list.add_node": {"src.list.node_t"}, "src.list.only_fast": {"src.list.add_node"}},
    ),
    "src/store.cpp": (
        CPP,
        [
            "src.store",
            "src.store.SQUARE",
            "src.store.acme.store.Store",
            "src.store.acme.store.Store.Store",
            "src.store.acme.store.Store.get",
            "src.store.acme.store.Store.open",
            "src.store.acme.store.Client",
            "src.store.c_api",
            "src.store.helper",
        ],
        {
            "src.store.acme.store.Store": {"src.store.acme.store.Client", "src.store.acme.store.Store.Store"},
            "src.store.acme.store.Store.Store": {"src.store.acme.store.Client"},
            "src.store.acme.store.Store.get": {"src.store.helper"},
            "src.store.acme.store.Store.open": {"src.store.acme.store.Client", "src.store.acme.store.Store"},
        },
    ),
    "src/Store.cs": (
        CSHARP,
        [
            "Acme.Stores",
            "Acme.Stores.Store",
            "Acme.Stores.Store.Store",
            "Acme.Stores.Store.Open",
            "Acme.Stores.Store.Check",
            "Acme.Stores.IStore",
            "Acme.Stores.Reader",
        ],
        {"Acme.Stores.Store.Open": {"Acme.Stores.Reader", "Acme.Stores.Store.Check"}},
    ),
    "src/Store.kt": (
        KOTLIN,
        [
            "com.acme.store",
            "com.acme.store.Store",
            "com.acme.store.Store.make",
            "com.acme.store.Store.open",
            "com.acme.store.Store.testOpen",
            "com.acme.store.Closeable",
            "com.acme.store.Closeable.shut",
            "com.acme.store.Reader",
            "com.acme.store.Reader.peruse",
            "com.acme.store.Kind",
        ],
        {
            "com.acme.store.Store": {"com.acme.store.Closeable"},
            "com.acme.store.Store.make": {"com.acme.store.Store"},
            "com.acme.store.Store.open": {"com.acme.store.Reader", "com.acme.store.Reader.peruse"},
        },
    ),
    "lib/acme/store.rb": (
        RUBY,
        [
            "lib.acme.store",
            "lib.acme.store.Acme",
            "lib.acme.store.Acme.Store",
            "lib.acme.store.Acme.Store.initialize",
            "lib.acme.store.Acme.Store.unlock",
            "lib.acme.store.Acme.Store.make",
            "lib.acme.store.Acme.Store.other",
            "lib.acme.store.Acme.Store.check",
            "lib.acme.store.Acme.Client",
            "lib.acme.store.Acme.Client.transmit",
            "lib.acme.store.Acme.Reader",
            "lib.acme.store.Acme.Reader.peruse",
            "lib.acme.store.Acme.Loud",
            "lib.acme.store.top_level",
        ],
        {
            "lib.acme.store.Acme.Store": {"lib.acme.store.Acme.Loud"},
            "lib.acme.store.Acme.Store.initialize": {"lib.acme.store.Acme.Client"},
            "lib.acme.store.Acme.Store.unlock": {
                "lib.acme.store.Acme.Client.transmit",
                "lib.acme.store.Acme.Reader",
                "lib.acme.store.Acme.Reader.peruse",
                "lib.acme.store.Acme.Store.check",
            },
        },
    ),
    "src/Store.php": (
        PHP,
        [
            "App.Models",
            "App.Models.Store",
            "App.Models.Store.__construct",
            "App.Models.Store.open",
            "App.Models.Store.check",
            "App.Models.Closable",
            "App.Models.Reader",
        ],
        {
            "App.Models.Store": {"App.Models.Closable"},
            "App.Models.Store.open": {"App.Models.Reader", "App.Models.Store.check"},
        },
    ),
    "bin/build.sh": (
        SHELL,
        ["bin.build", "bin.build.build", "bin.build.deploy"],
        {"bin.build": {"bin.build.build"}, "bin.build.deploy": {"bin.build.build"}},
    ),
    "db/schema.sql": (
        SQL,
        ["db.schema.app.users", "db.schema.orgs", "db.schema.users_name", "db.schema.active", "db.schema.total"],
        {
            "db.schema.app.users": {"db.schema.orgs"},
            "db.schema.users_name": {"db.schema.app.users"},
            "db.schema.active": {"db.schema.app.users", "db.schema.orgs"},
            "db.schema.total": {"db.schema.active"},
        },
    ),
}


@pytest.mark.parametrize("path", FILES)
def test_given_a_file_when_cut_then_each_definition_is_a_chunk_that_leads_to_what_it_uses(path: str) -> None:
    source, symbols, edges = FILES[path]
    tree = Tree({path: source})
    assert tree.symbols(path) == symbols
    for symbol, targets in edges.items():
        assert tree.leads(symbol) == targets, symbol


@pytest.mark.parametrize(
    ("path", "source", "imports", "definitions"),
    [
        ("a.c", C, {"util.h", "stdio.h"}, {("struct", "node_t"), ("function", "add_node"), ("enum", "color")}),
        ("a.h", CPP, {"net/client.hpp"}, {("class", "acme.store.Store"), ("method", "acme.store.Store.open")}),
        ("a.cs", CSHARP, {"System", "Acme.Net"}, {("interface", "IStore"), ("method", "IStore.Shut")}),
        ("a.kt", KOTLIN, {"com.acme.net.Client"}, {("interface", "Closeable"), ("enum", "Kind")}),
        ("a.rb", RUBY, {"json", "../util/helper"}, {("module", "Acme"), ("method", "Acme.Store.make")}),
        ("a.php", PHP, {"App.Util.Other", "x/y.php"}, {("interface", "Closable"), ("method", "Store.open")}),
        ("a.sh", SHELL, {"./lib/util.sh"}, {("function", "build"), ("function", "deploy")}),
        ("a.sql", SQL, set(), {("table", "app.users"), ("view", "active"), ("function", "total")}),
    ],
)
def test_given_a_file_when_listed_then_it_says_what_it_imports_and_defines(
    path: str, source: str, imports: set[str], definitions: set[tuple[str, str]]
) -> None:
    found = chunks(path, source)
    assert imports <= {name for chunk in found for name in chunk.imports}
    assert definitions <= {(one.kind, one.name) for chunk in found for one in chunk.definitions or ()}


def test_given_marks_of_other_frameworks_when_listed_then_bases_calls_and_tests_are_known() -> None:
    sharp = {one.name: one for chunk in chunks("a.cs", CSHARP) for one in chunk.definitions or ()}
    assert sharp["Store"].bases == ("Base", "IDisposable")
    assert sharp["Store.Open"].test
    assert sharp["Store.Open"].is_async
    assert "client.Transmit" in sharp["Store.Open"].calls
    kotlin = {one.name: one for chunk in chunks("a.kt", KOTLIN) for one in chunk.definitions or ()}
    assert kotlin["Store.testOpen"].test
    assert "com.acme.log.Logger" in kotlin["Store.testOpen"].calls
    (store,) = [chunk for chunk in chunks("a.cpp", CPP) if chunk.symbol == "a.acme.store.Store"]
    assert (store.definitions or ())[0].bases == ("Base", "detail::Mixin")
    assert store.text.startswith("/// Keeps things.\ntemplate <typename T>\nclass Store")
