//! Determines which program a command starts, if that is certain. The value of a secret may go to one program, but not
//! to other programs that a shell command line starts.

use super::request::CommandLine;

/// Characters that, outside of quotes, make a shell start several programs, or a program other than the line shows.
const OPERATORS: &str = ";&|<>()$`\\\n\r";
/// Characters that also have this effect inside double quotes.
const QUOTED_OPERATORS: &str = "$`\\";

impl CommandLine {
    /// Returns the name of the program if the command starts no other program. Returns `None` if the program is given
    /// by its path, or if a shell could start other programs.
    pub(crate) fn only_program(&self) -> Option<&str> {
        let (program, is_simple) = match self {
            Self::Argv(argv) => (argv.first()?.as_str(), true),
            Self::Shell(line) => {
                let line = line.trim_matches([' ', '\t']);
                let end = line.find([' ', '\t']).unwrap_or(line.len());
                (&line[..end], is_simple(line))
            }
        };
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
        (is_simple && !program.is_empty() && program.bytes().all(is_plain)).then_some(program)
    }

    /// Returns whether a program is mentioned anywhere in the command.
    pub(crate) fn mentions(&self, program: &str) -> bool {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
        let has_word = |text: &str| text.split(|c| !is_part(c)).any(|word| word == program);
        match self {
            Self::Argv(argv) => argv.iter().any(|word| has_word(word)),
            Self::Shell(line) => has_word(line),
        }
    }
}

/// Returns whether a line consists of words and quoted words only.
fn is_simple(line: &str) -> bool {
    let mut quote = None;
    for c in line.chars() {
        match quote {
            None if OPERATORS.contains(c) => return false,
            None if c == '\'' || c == '"' => quote = Some(c),
            None => {}
            Some(open) if c == open => quote = None,
            Some('"') if QUOTED_OPERATORS.contains(c) => return false,
            Some(_) => {}
        }
    }
    quote.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> CommandLine {
        CommandLine::Shell(text.to_owned())
    }

    #[test]
    fn a_simple_line_starts_its_first_word() {
        for text in [
            "aws s3 ls",
            "  aws s3 cp 'a b;c' \"d e\" x*",
            "aws",
            "aws 's3://$bucket/`x`'",
        ] {
            assert_eq!(line(text).only_program(), Some("aws"), "{text}");
        }
        let argv = CommandLine::Argv(vec!["aws".into(), "a;b".into()]);
        assert_eq!(argv.only_program(), Some("aws"));
    }

    #[test]
    fn a_line_that_could_start_other_programs_has_no_only_program() {
        for text in [
            "aws s3 ls; env",
            "aws s3 ls | tee x",
            "aws s3 ls > out",
            "aws $(env)",
            "aws `env`",
            "aws \"$(env)\"",
            "aws \"`env`\"",
            "aws $X",
            "aws s3 ls\nenv",
            "aws s3 ls & env",
            "A=1 aws s3 ls",
            "./aws s3 ls",
            "/tmp/aws s3 ls",
            "\"aws\" s3",
            "a\\ws s3",
            "aws 'x",
        ] {
            assert_eq!(line(text).only_program(), None, "{text}");
        }
        let path = CommandLine::Argv(vec!["./aws".into()]);
        assert_eq!(path.only_program(), None);
        assert_eq!(line("env aws").only_program(), Some("env"));
    }

    #[test]
    fn a_program_is_mentioned_as_a_whole_word() {
        assert!(line("cd x && aws s3 ls").mentions("aws"));
        assert!(line("/usr/bin/aws").mentions("aws"));
        assert!(!line("laws draws aws2").mentions("aws"));
    }
}
