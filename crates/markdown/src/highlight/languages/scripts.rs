//! Languages that are usually interpreted.

use crate::highlight::language::{C_FAMILY, Language, NONE, QUOTES, Quote};

/// Strings of shells: `'` has no escapes, and both span lines.
const SHELL_QUOTES: &[Quote] = &[Quote::block("\""), Quote::raw("'", "'")];

/// Strings that span lines if their quotes are tripled.
const TRIPLE_QUOTES: &[Quote] = &[
    Quote::block("\"\"\""),
    Quote::block("'''"),
    Quote::line("\""),
    Quote::line("'"),
];

pub(super) const LANGUAGES: &[Language] = &[
    Language {
        names: &["python", "py", "python3", "pycon", "starlark", "bazel"],
        line_comments: &["#"],
        quotes: TRIPLE_QUOTES,
        keywords: "and as assert async await break case class continue def del elif else except finally for from \
                   global if import in is lambda match nonlocal not or pass raise return try while with yield",
        literals: "True False None self cls",
        sigils: "@",
        ..NONE
    },
    Language {
        names: &[
            "javascript",
            "js",
            "jsx",
            "mjs",
            "cjs",
            "node",
            "typescript",
            "ts",
            "tsx",
            "mts",
        ],
        quotes: &[Quote::line("\""), Quote::line("'"), Quote::block("`")],
        keywords: "abstract any as async await boolean break case catch class const constructor continue debugger \
                   declare default delete do else enum export extends finally for from function get if implements \
                   import in infer instanceof interface is keyof let namespace new number of private protected public \
                   readonly return satisfies set static string super switch this throw try type typeof unknown var \
                   void while with yield",
        literals: "true false null undefined NaN Infinity",
        sigils: "@",
        name_characters: "$",
        ..C_FAMILY
    },
    Language {
        names: &[
            "bash",
            "sh",
            "shell",
            "zsh",
            "fish",
            "console",
            "shellsession",
            "shell-session",
            "terminal",
        ],
        line_comments: &["#"],
        quotes: SHELL_QUOTES,
        keywords: "if then elif else fi for while until do done case esac in function select return exit break \
                   continue local export readonly declare unset source alias set shift trap eval exec cd echo sudo",
        literals: "true false",
        sigils: "$",
        name_characters: "-",
        has_calls: false,
        ..NONE
    },
    Language {
        names: &["powershell", "ps1", "pwsh", "ps"],
        line_comments: &["#"],
        block_comments: &[("<#", "#>")],
        quotes: &[Quote::raw("\"", "\""), Quote::raw("'", "'")],
        keywords: "begin break catch class continue do else elseif end enum exit finally for foreach function if in \
                   param process return switch throw trap try until using while",
        literals: "",
        ignores_case: true,
        sigils: "$",
        name_characters: "-",
        ..NONE
    },
    Language {
        names: &["batch", "bat", "cmd"],
        line_comments: &["::", "rem ", "REM "],
        quotes: &[Quote::line("\"")],
        keywords: "call cd copy del echo else errorlevel exist exit for goto if in do not pause set setlocal shift",
        ignores_case: true,
        ..NONE
    },
    Language {
        names: &["ruby", "rb", "crystal"],
        line_comments: &["#"],
        block_comments: &[("=begin", "=end")],
        quotes: QUOTES,
        keywords: "alias and begin break case class def defined do else elsif end ensure extend for if in include \
                   module next not or private protected public raise redo require require_relative rescue retry \
                   return super then undef unless until when while yield attr_accessor attr_reader attr_writer",
        literals: "true false nil self",
        sigils: "@$",
        name_characters: "?!",
        ..NONE
    },
    Language {
        names: &["php"],
        line_comments: &["//", "#"],
        block_comments: &[("/*", "*/")],
        quotes: SHELL_QUOTES,
        keywords: "abstract and array as break case catch class clone const continue declare default do echo else \
                   elseif enum extends final finally fn for foreach function global if implements include instanceof \
                   interface match namespace new or print private protected public readonly require require_once \
                   return static switch throw trait try use var while yield",
        ignores_case: true,
        sigils: "$",
        ..NONE
    },
    Language {
        names: &["perl", "pl", "raku"],
        line_comments: &["#"],
        quotes: SHELL_QUOTES,
        keywords: "and my our local sub package use no if elsif else unless while until for foreach do last next redo \
                   return require eval die warn print say not or BEGIN END",
        literals: "undef",
        sigils: "$@%",
        ..NONE
    },
    Language {
        names: &["lua", "luau"],
        line_comments: &["--"],
        block_comments: &[("--[[", "]]")],
        quotes: &[Quote::raw("[[", "]]"), Quote::line("\""), Quote::line("'")],
        keywords: "and break do else elseif end for function goto if in local not or repeat return then until while",
        literals: "true false nil self",
        ..NONE
    },
    Language {
        names: &["r"],
        line_comments: &["#"],
        keywords: "break else for function if in library next repeat require return while",
        literals: "TRUE FALSE NULL NA NaN Inf",
        name_characters: ".",
        ..NONE
    },
    Language {
        names: &["julia", "jl"],
        line_comments: &["#"],
        block_comments: &[("#=", "=#")],
        nests_comments: true,
        quotes: &[Quote::block("\"\"\""), Quote::line("\"")],
        keywords: "abstract baremodule begin break catch const continue do else elseif end export finally for \
                   function global if import in let local macro module mutable primitive quote return struct try \
                   type using where while",
        literals: "true false nothing missing",
        sigils: "@",
        name_characters: "!",
        ..NONE
    },
    Language {
        names: &["elixir", "ex", "exs", "iex"],
        line_comments: &["#"],
        quotes: TRIPLE_QUOTES,
        keywords: "after alias and case catch cond def defdelegate defimpl defmacro defmodule defp defprotocol \
                   defstruct do else end fn for if import in not or quote raise receive require rescue try unless \
                   unquote use when with",
        literals: "true false nil",
        sigils: "@:",
        name_characters: "?!",
        ..NONE
    },
    Language {
        names: &["erlang", "erl"],
        line_comments: &["%"],
        quotes: QUOTES,
        keywords: "after and andalso begin case catch end fun if let not of or orelse receive try when",
        literals: "true false undefined ok error",
        ..NONE
    },
    Language {
        names: &[
            "clojure",
            "clj",
            "cljs",
            "lisp",
            "scheme",
            "racket",
            "elisp",
            "emacs-lisp",
        ],
        line_comments: &[";"],
        quotes: &[Quote::block("\"")],
        keywords: "begin case catch cond cond-> def define defmacro defmethod defmulti defn defn- defprotocol \
                   defrecord defun defvar do doseq dotimes fn for if if-let lambda let let* letrec loop ns progn quote \
                   recur require set! setq throw try when when-let",
        literals: "true false nil t",
        sigils: ":",
        name_characters: "-*?!>+/=<",
        has_calls: false,
        ..NONE
    },
    Language {
        names: &["vim", "viml", "vimscript"],
        line_comments: &["\""],
        quotes: &[Quote::line("'")],
        keywords: "augroup autocmd call command const echo else elseif endfor endfunction endif endwhile execute for \
                   function if in let map nnoremap noremap return set setlocal silent syntax unlet while",
        ..NONE
    },
];
