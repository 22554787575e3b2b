//! Data, configuration, queries and style sheets.

use crate::highlight::language::{C_FAMILY, Language, NONE, QUOTES, Quote};

pub(super) const LANGUAGES: &[Language] = &[
    Language {
        names: &["json", "jsonc", "json5", "jsonl", "ndjson", "geojson"],
        key_end: Some(':'),
        ..C_FAMILY
    },
    Language {
        names: &["yaml", "yml"],
        line_comments: &["#"],
        literals: "true false null yes no on off",
        key_end: Some(':'),
        name_characters: "-./",
        has_calls: false,
        ..NONE
    },
    Language {
        names: &[
            "toml",
            "ini",
            "conf",
            "cfg",
            "properties",
            "dotenv",
            "env",
            "editorconfig",
        ],
        line_comments: &["#", ";"],
        quotes: &[
            Quote::block("\"\"\""),
            Quote::raw("'''", "'''"),
            Quote::line("\""),
            Quote::line("'"),
        ],
        literals: "true false",
        key_end: Some('='),
        name_characters: "-.",
        has_calls: false,
        ..NONE
    },
    Language {
        names: &[
            "sql",
            "mysql",
            "postgresql",
            "postgres",
            "psql",
            "sqlite",
            "plsql",
            "tsql",
        ],
        line_comments: &["--"],
        block_comments: &[("/*", "*/")],
        quotes: &[Quote::raw("'", "'"), Quote::raw("\"", "\"")],
        keywords: "add all alter and any as asc begin between by case cast check column commit constraint create cross \
                   database default delete desc distinct drop else end except exists explain fetch for foreign from \
                   full function grant group having if in index inner insert intersect into is join key lateral left \
                   like limit materialized natural not offset on or order outer over partition primary procedure \
                   references returning right rollback row rows schema select set table temporary then to transaction \
                   trigger truncate union unique update using vacuum values view when where window with bigint boolean \
                   char date decimal double int integer json jsonb numeric real serial smallint text timestamp uuid \
                   varchar",
        ignores_case: true,
        ..NONE
    },
    Language {
        names: &["css", "scss", "less", "sass"],
        line_comments: &["// "],
        keywords: "@media @import @keyframes @supports @font-face @layer @include @mixin @extend @use @if @else @each \
                   @for @return @function @apply @tailwind !important",
        literals: "auto none inherit initial unset",
        sigils: "$",
        name_characters: "-@!",
        key_end: Some(':'),
        ..C_FAMILY
    },
    Language {
        names: &["dockerfile", "docker", "containerfile"],
        line_comments: &["#"],
        keywords: "ADD ARG AS CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL ONBUILD RUN SHELL STOPSIGNAL USER \
                   VOLUME WORKDIR",
        sigils: "$",
        name_characters: "-",
        has_calls: false,
        ..NONE
    },
    Language {
        names: &["makefile", "make", "just", "justfile", "cmake", "meson"],
        line_comments: &["#"],
        keywords: "define else endef endif export foreach ifdef ifeq ifndef ifneq if elseif endforeach function \
                   endfunction include override set unexport vpath",
        sigils: "$",
        name_characters: "-.",
        key_end: Some(':'),
        ..NONE
    },
    Language {
        names: &["hcl", "terraform", "tf"],
        line_comments: &["#", "//"],
        block_comments: &[("/*", "*/")],
        keywords: "data for for_each if in locals module output provider resource terraform variable",
        key_end: Some('='),
        name_characters: "-",
        ..NONE
    },
    Language {
        names: &["nix"],
        line_comments: &["#"],
        block_comments: &[("/*", "*/")],
        quotes: &[Quote::raw("''", "''"), Quote::block("\"")],
        keywords: "assert else if in inherit let or rec then with",
        key_end: Some('='),
        name_characters: "-'",
        has_calls: false,
        ..NONE
    },
    Language {
        names: &["graphql", "gql"],
        line_comments: &["#"],
        quotes: &[Quote::block("\"\"\""), Quote::line("\"")],
        keywords: "directive enum extend fragment implements input interface mutation on query scalar schema \
                   subscription type union",
        sigils: "$@",
        ..NONE
    },
    Language {
        names: &["protobuf", "proto", "thrift"],
        keywords: "bool bytes double enum extend extensions fixed32 fixed64 float import int32 int64 map message oneof \
                   option optional package public repeated required reserved returns rpc service stream string struct \
                   syntax uint32 uint64",
        ..C_FAMILY
    },
    Language {
        names: &["nginx", "nginxconf"],
        line_comments: &["#"],
        quotes: QUOTES,
        keywords: "events http if include listen location proxy_pass return rewrite root server server_name upstream",
        literals: "on off",
        sigils: "$",
        has_calls: false,
        ..NONE
    },
    Language {
        names: &["latex", "tex", "bibtex"],
        line_comments: &["%"],
        quotes: &[],
        literals: "",
        sigils: "\\@",
        has_calls: false,
        ..NONE
    },
];
