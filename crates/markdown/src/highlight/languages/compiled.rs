//! Languages that are usually compiled.

use crate::highlight::language::{C_FAMILY, Language, NONE, Quote};

pub(super) const LANGUAGES: &[Language] = &[
    Language {
        names: &["rust", "rs"],
        nests_comments: true,
        quotes: &[
            Quote::raw("r##\"", "\"##"),
            Quote::raw("r#\"", "\"#"),
            Quote::raw("r\"", "\""),
            Quote::block("\""),
        ],
        keywords: "as async await break const continue crate dyn else enum extern fn for if impl in let loop match \
                   mod move mut pub ref return self Self static struct super trait type unsafe use where while yield",
        literals: "true false None Some Ok Err",
        has_lifetimes: true,
        ..C_FAMILY
    },
    Language {
        names: &["c", "h"],
        keywords: "auto break case char const continue default do double else enum extern float for goto if inline \
                   int long register restrict return short signed sizeof static struct switch typedef union unsigned \
                   void volatile while bool #include #define #ifdef #ifndef #if #else #elif #endif #undef #pragma",
        literals: "true false NULL nullptr",
        name_characters: "#",
        ..C_FAMILY
    },
    Language {
        names: &[
            "cpp",
            "c++",
            "cc",
            "cxx",
            "hpp",
            "objc",
            "objective-c",
            "arduino",
            "cuda",
        ],
        keywords: "alignas alignof auto bool break case catch char class co_await co_return co_yield concept const \
                   consteval constexpr constinit continue decltype default delete do double dynamic_cast else enum \
                   explicit export extern final float for friend goto if inline int long mutable namespace new \
                   noexcept operator override private protected public reinterpret_cast requires return short signed \
                   sizeof static static_assert static_cast struct switch template this thread_local throw try typedef \
                   typeid typename union unsigned using virtual void volatile while #include #define #ifdef #ifndef \
                   #if #else #elif #endif #undef #pragma",
        literals: "true false NULL nullptr nil YES NO",
        name_characters: "#",
        ..C_FAMILY
    },
    Language {
        names: &["go", "golang"],
        quotes: &[Quote::line("\""), Quote::line("'"), Quote::raw("`", "`")],
        keywords: "break case chan const continue default defer else fallthrough for func go goto if import interface \
                   map package range return select struct switch type var any bool byte error float32 float64 int \
                   int32 int64 rune string uint uint8",
        literals: "true false nil iota",
        ..C_FAMILY
    },
    Language {
        names: &["java", "groovy", "gradle"],
        quotes: &[Quote::block("\"\"\""), Quote::line("\""), Quote::line("'")],
        keywords: "abstract assert boolean break byte case catch char class const continue def default do double else \
                   enum extends final finally float for if implements import instanceof int interface long native new \
                   package permits private protected public record return sealed short static super switch \
                   synchronized this throw throws transient try var void volatile while yield",
        sigils: "@",
        ..C_FAMILY
    },
    Language {
        names: &["kotlin", "kt", "kts"],
        nests_comments: true,
        quotes: &[
            Quote::raw("\"\"\"", "\"\"\""),
            Quote::line("\""),
            Quote::line("'"),
        ],
        keywords: "abstract as break by class companion const constructor continue data do else enum fun for if \
                   import in init inline interface internal is lateinit object open operator out override package \
                   private protected public return sealed super suspend this throw try typealias val var when while",
        sigils: "@",
        ..C_FAMILY
    },
    Language {
        names: &["scala"],
        nests_comments: true,
        quotes: &[Quote::raw("\"\"\"", "\"\"\""), Quote::line("\"")],
        keywords: "abstract case catch class def do else enum extends final finally for given if implicit import lazy \
                   match new object override package private protected return sealed super then this throw trait try \
                   type using val var while with yield",
        sigils: "@",
        ..C_FAMILY
    },
    Language {
        names: &["csharp", "cs", "c#"],
        quotes: &[
            Quote::raw("\"\"\"", "\"\"\""),
            Quote::raw("@\"", "\""),
            Quote::line("\""),
            Quote::line("'"),
        ],
        keywords: "abstract as async await base bool break byte case catch char class const continue decimal default \
                   delegate do double else enum event explicit extern finally fixed float for foreach get if implicit \
                   in init int interface internal is lock long namespace new object operator out override params \
                   partial private protected public readonly record ref required return sealed set short sizeof \
                   static string struct switch this throw try typeof uint ulong unsafe using var virtual void while \
                   yield",
        ..C_FAMILY
    },
    Language {
        names: &["swift"],
        nests_comments: true,
        quotes: &[Quote::block("\"\"\""), Quote::line("\"")],
        keywords: "actor as async await break case catch class continue default defer do else enum extension \
                   fileprivate final for func guard if import in init inout internal is lazy let mutating open \
                   operator override private protocol public repeat rethrows return self Self some static struct \
                   subscript super switch throw throws try typealias var weak where while",
        literals: "true false nil",
        sigils: "@",
        ..C_FAMILY
    },
    Language {
        names: &["dart"],
        quotes: &[
            Quote::block("\"\"\""),
            Quote::block("'''"),
            Quote::line("\""),
            Quote::line("'"),
        ],
        keywords: "abstract as async await bool break case catch class const continue default do double dynamic else \
                   enum export extends extension factory final finally for if implements import in int is late \
                   library mixin new num on part required return static String super switch this throw try typedef \
                   var void while with yield",
        sigils: "@",
        ..C_FAMILY
    },
    Language {
        names: &["zig"],
        line_comments: &["//"],
        keywords: "align allowzero and anytype asm async await break catch comptime const continue defer else enum \
                   errdefer error export extern fn for if inline noalias or orelse packed pub resume return struct \
                   suspend switch test threadlocal try union unreachable usingnamespace var volatile while",
        literals: "true false null undefined",
        sigils: "@",
        ..NONE
    },
    Language {
        names: &["solidity", "sol"],
        keywords: "abstract address bool break bytes bytes32 calldata constant constructor continue contract delete do \
                   else emit enum error event external fallback for function if immutable import indexed int interface \
                   internal is library mapping memory modifier new override payable pragma private public pure receive \
                   require return returns revert storage string struct uint uint256 unchecked using view virtual while",
        ..C_FAMILY
    },
    Language {
        names: &["haskell", "hs", "elm", "purescript"],
        line_comments: &["--"],
        block_comments: &[("{-", "-}")],
        nests_comments: true,
        quotes: &[Quote::line("\"")],
        keywords: "case class data deriving do else forall foreign if import in infix infixl infixr instance let \
                   module newtype of qualified then type where",
        literals: "True False Nothing Just Left Right",
        has_calls: false,
        ..NONE
    },
    Language {
        names: &["ocaml", "ml", "fsharp", "fs", "f#"],
        line_comments: &["//"],
        block_comments: &[("(*", "*)")],
        nests_comments: true,
        quotes: &[Quote::line("\"")],
        keywords: "and as assert begin class do done downto else end exception external for fun function functor if \
                   in include inherit initializer lazy let match member method module mutable namespace new object \
                   of open or private rec sig struct then to try type use val virtual when while with yield",
        literals: "true false None Some Ok Error",
        has_calls: false,
        ..NONE
    },
];
