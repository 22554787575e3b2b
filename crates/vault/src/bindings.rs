//! Encodes bindings for the manifest, and computes the digest of bindings that is part of a record's identity.

use crate::cipher::{self, DIGEST_BYTES};
use crate::encoding::{Reader, Writer};
use crate::error::VaultError;
use lango_secrets::{Binding, BindingError, BindingTarget, MAX_BINDINGS, Origin, ServerToolId};

const HEADER: u8 = 1;
const PROGRAM: u8 = 2;
const FIELD: u8 = 3;
const SERVER_FIELD: u8 = 4;

/// Returns the digest of bindings; zeros if there are none.
pub(crate) fn digest(bindings: &[Binding]) -> [u8; DIGEST_BYTES] {
    if bindings.is_empty() {
        return [0; DIGEST_BYTES];
    }
    let mut bytes = Writer::labelled("lango vault bindings");
    write(bindings, &mut bytes);
    cipher::digest(&bytes.into_bytes())
}

pub(crate) fn write(bindings: &[Binding], to: &mut Writer) {
    to.byte(u8::try_from(bindings.len()).unwrap_or(u8::MAX));
    for binding in bindings {
        to.text(&binding.tool);
        match &binding.target {
            BindingTarget::Header {
                origin,
                header,
                variable,
            } => {
                to.byte(HEADER);
                to.text(&origin.to_string());
                to.text(header);
                to.text(variable);
            }
            BindingTarget::Program { program, variable } => {
                to.byte(PROGRAM);
                to.text(program);
                to.text(variable);
            }
            BindingTarget::Field { field, origin } => {
                to.byte(FIELD);
                to.text(field);
                to.text(&origin.as_ref().map(Origin::to_string).unwrap_or_default());
            }
            BindingTarget::ServerField { tool, field } => {
                to.byte(SERVER_FIELD);
                to.text(tool);
                to.text(field);
            }
        }
    }
}

/// Reads bindings. The caller compares their digest, so that only the output of [`write`] is accepted.
pub(crate) fn read(from: &mut Reader<'_>) -> Result<Vec<Binding>, VaultError> {
    let count = usize::from(from.byte()?);
    if count > MAX_BINDINGS {
        return Err(VaultError::changed("it has too many bindings"));
    }
    (0..count).map(|_| read_one(from)).collect()
}

fn read_one(from: &mut Reader<'_>) -> Result<Binding, VaultError> {
    let foreign = || VaultError::changed("it has bindings that lango never writes");
    let invalid = |_: BindingError| foreign();
    let tool = from.text()?;
    let binding = match from.byte()? {
        HEADER => {
            let origin = Origin::parse(from.text()?).map_err(invalid)?;
            let header = from.text()?;
            Binding::header(tool, origin, header, from.text()?)
        }
        PROGRAM => {
            let program = from.text()?;
            Binding::program(tool, program, from.text()?)
        }
        FIELD => {
            let field = from.text()?;
            let origin = match from.text()? {
                "" => None,
                origin => Some(Origin::parse(origin).map_err(invalid)?),
            };
            Binding::field(tool, field, origin)
        }
        SERVER_FIELD => {
            let id = ServerToolId {
                server: Binding::mcp_server_of(tool).ok_or_else(foreign)?.into(),
                tool: from.text()?.into(),
            };
            Binding::server_field(&id, from.text()?)
        }
        _ => return Err(foreign()),
    };
    binding.map_err(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bindings_survive_encoding_and_have_different_digests() {
        let origin = |text| Origin::parse(text).unwrap();
        let header = |host, name| Binding::header("exec", origin(host), name, "TOKEN").unwrap();
        let server_field = |server: &str, tool: &str| {
            let id = ServerToolId {
                server: server.into(),
                tool: tool.into(),
            };
            Binding::server_field(&id, "password").unwrap()
        };
        let all = [
            header("github.com", "authorization"),
            header("http://github.com:443", "authorization"),
            header("[::1]:8443", "x-key"),
            Binding::program("exec", "aws", "KEY").unwrap(),
            Binding::program("mcp:a", "aws", "KEY").unwrap(),
            Binding::field("browser_act", "text", None).unwrap(),
            Binding::field("browser_act", "text", Some(origin("example.com"))).unwrap(),
            server_field("pay", "b_login"),
            server_field("pay_b", "login"),
        ];
        let mut writer = Writer::default();
        write(&all, &mut writer);
        let bytes = writer.into_bytes();
        let mut reader = Reader::new(&bytes);
        assert_eq!(read(&mut reader).unwrap(), all);
        reader.finish().unwrap();
        assert_eq!(digest(&[]), [0; DIGEST_BYTES]);
        let mut digests: Vec<_> = all
            .iter()
            .map(|binding| digest(std::slice::from_ref(binding)))
            .collect();
        digests.push(digest(&all));
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), all.len() + 1);
    }
}
