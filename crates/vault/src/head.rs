//! The head of a vault: its unlock methods and the manifest of its records. A key that is derived from the master key
//! authenticates the whole head.

use crate::cipher::{self, DIGEST_BYTES};
use crate::encoding::{Reader, Writer};
use crate::envelope::{self, VaultIdentity};
use crate::error::VaultError;
use crate::key::Key;
use crate::manifest::{MAX_SECRETS, SecretEntry};
use crate::method::{MAX_METHODS, UnlockMethod, UnlockSecret};
use crate::vault::run_blocking;
use lango_core::{UserId, VaultRecord, VaultSnapshot};
use lango_secrets::SecretName;
use std::collections::BTreeMap;

const MAGIC: &[u8; 4] = b"LVLT";

/// The current format. Format 1 has no bindings; format 2 has no bindings to tools of MCP servers and no public
/// identifiers of keys.
const FORMAT: u8 = 3;

/// Length of a master key's fingerprint in bytes.
const FINGERPRINT_BYTES: usize = 16;

/// The keys derived from a master key.
#[derive(Debug)]
pub(crate) struct Keys {
    /// The key that wraps record keys.
    pub wrapping: Key,
    /// The key that authenticates the head.
    manifest: Key,
    /// A fingerprint that identifies the master key without revealing it.
    fingerprint: [u8; FINGERPRINT_BYTES],
}

impl Keys {
    pub(crate) fn derive(master: &Key, vault: [u8; 16]) -> Result<Self, VaultError> {
        let derive = |purpose| cipher::derive(master, &vault, purpose);
        let mut fingerprint = [0; FINGERPRINT_BYTES];
        fingerprint.copy_from_slice(&derive("lango vault key mark")?.expose()[..FINGERPRINT_BYTES]);
        Ok(Self {
            wrapping: derive("lango vault record keys")?,
            manifest: derive("lango vault manifest")?,
            fingerprint,
        })
    }
}

/// The content of a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub vault: VaultIdentity,
    /// Incremented by every change.
    pub revision: u64,
    /// The id of the next method.
    pub next_method: u16,
    pub methods: Vec<UnlockMethod>,
    pub entries: BTreeMap<SecretName, SecretEntry>,
}

impl Head {
    /// Encodes the head for storage.
    pub(crate) fn encode(&self, keys: &Keys) -> Vec<u8> {
        let mut body = Writer::default();
        body.array(MAGIC);
        body.byte(FORMAT);
        body.array(&self.vault.id);
        body.array(&keys.fingerprint);
        body.long(self.revision);
        body.short(self.next_method);
        body.byte(u8::try_from(self.methods.len()).unwrap_or(u8::MAX));
        self.methods
            .iter()
            .for_each(|method| method.write(&mut body));
        body.short(u16::try_from(self.entries.len()).unwrap_or(u16::MAX));
        self.entries
            .values()
            .for_each(|entry| entry.write(&mut body));
        let mut body = body.into_bytes();
        let code = cipher::authenticate(&keys.manifest, &authenticated(&self.vault.owner, &body));
        body.extend(code);
        body
    }

    /// Adds a method and returns its id. Ids are never reused.
    pub(crate) fn add_method(&mut self, mut method: UnlockMethod) -> Result<u16, VaultError> {
        let (limit, things) = (MAX_METHODS, "unlock methods");
        if self.methods.len() >= limit {
            return Err(VaultError::Limit { limit, things });
        }
        let id = self.next_method;
        self.next_method = id
            .checked_add(1)
            .ok_or(VaultError::Limit { limit, things })?;
        method.id = id;
        self.methods.push(method);
        Ok(id)
    }

    pub(crate) fn entry(&self, name: &SecretName) -> Result<&SecretEntry, VaultError> {
        self.entries.get(name).ok_or_else(|| VaultError::NotFound {
            name: name.to_string(),
        })
    }

    /// Returns the record of an entry. Fails if it is missing or does not match the entry.
    pub(crate) fn record<'a>(
        entry: &SecretEntry,
        records: &'a [VaultRecord],
    ) -> Result<&'a VaultRecord, VaultError> {
        let found = records
            .iter()
            .find(|record| *record.name == *entry.name.as_str());
        let record = found.ok_or_else(|| VaultError::RecordMissing {
            name: entry.name.to_string(),
            kind: entry.kind,
        })?;
        envelope::check(entry, &record.envelope)?;
        Ok(record)
    }
}

/// Returns the bytes of a head to authenticate. They include the owner, which is otherwise stored only in the key of
/// the row.
fn authenticated(owner: &UserId, body: &[u8]) -> Vec<u8> {
    let mut bytes = Writer::labelled("lango vault head");
    bytes.text(owner.as_str());
    bytes.array(body);
    bytes.into_bytes()
}

/// The revision of a vault. Every change increments it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VaultVersion {
    id: [u8; 16],
    revision: u64,
}

/// A vault as read from the store, not yet authenticated.
#[derive(Debug, Clone)]
pub struct SealedVault {
    head: Head,
    fingerprint: [u8; FINGERPRINT_BYTES],
    body: Vec<u8>,
    code: [u8; DIGEST_BYTES],
    records: Vec<VaultRecord>,
}

impl SealedVault {
    pub(crate) fn read(owner: &UserId, snapshot: VaultSnapshot) -> Result<Self, VaultError> {
        if snapshot.revision == 0 && snapshot.head.is_empty() {
            return Err(VaultError::HeadMissing);
        }
        let end = snapshot.head.len().checked_sub(DIGEST_BYTES);
        let (body, code) = end
            .and_then(|end| snapshot.head.split_at_checked(end))
            .ok_or_else(|| VaultError::changed("its head is truncated"))?;
        let mut reader = Reader::new(body);
        if reader.array()? != *MAGIC {
            return Err(VaultError::changed("its head is not one of lango's"));
        }
        let format = reader.byte()?;
        if format > FORMAT {
            return Err(VaultError::TooNew {
                found: format,
                known: FORMAT,
            });
        }
        if format == 0 {
            return Err(VaultError::changed("its head is not one of lango's"));
        }
        let id = reader.array()?;
        let fingerprint = reader.array()?;
        let revision = reader.long()?;
        let next_method = reader.short()?;
        let count = usize::from(reader.byte()?);
        if count > MAX_METHODS {
            return Err(VaultError::changed("it has too many unlock methods"));
        }
        let methods = (0..count).map(|_| UnlockMethod::read(&mut reader));
        let methods = methods.collect::<Result<Vec<_>, _>>()?;
        let count = usize::from(reader.short()?);
        if count > MAX_SECRETS {
            return Err(VaultError::changed("it has too many secrets"));
        }
        let entries = (0..count).map(|_| SecretEntry::read(&mut reader, format));
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        reader.finish()?;
        if revision != snapshot.revision {
            return Err(VaultError::changed(
                "its revision differs from that of its head",
            ));
        }
        let owner = owner.clone();
        let entries = entries.into_iter().map(|entry| (entry.name.clone(), entry));
        Ok(Self {
            head: Head {
                vault: VaultIdentity { id, owner },
                revision,
                next_method,
                methods,
                entries: entries.collect(),
            },
            fingerprint,
            code: Reader::new(code).array()?,
            body: body.to_vec(),
            records: snapshot.records,
        })
    }

    /// Returns the random id of the vault.
    pub fn id(&self) -> [u8; 16] {
        self.head.vault.id
    }

    /// Returns the version, which is not authenticated yet.
    pub fn version(&self) -> VaultVersion {
        VaultVersion {
            id: self.head.vault.id,
            revision: self.head.revision,
        }
    }

    /// Returns the unlock methods, which are not authenticated yet.
    pub fn methods(&self) -> &[UnlockMethod] {
        &self.head.methods
    }

    /// Returns the entries of the manifest, which are not authenticated yet.
    pub fn entries(&self) -> impl Iterator<Item = &SecretEntry> {
        self.head.entries.values()
    }

    /// Returns the problems of the records that can be detected without a key. An attacker who also rewrites the
    /// manifest evades this check, but not the check with the key.
    pub fn record_problems(&self) -> Vec<VaultError> {
        let entries = self.head.entries.values();
        let broken = entries.filter_map(|entry| Head::record(entry, &self.records).err());
        let is_known = |record: &&VaultRecord| {
            let mut names = self.head.entries.keys();
            names.any(|name| name.as_str() == &*record.name)
        };
        let foreign = self.records.iter().filter(|record| !is_known(record));
        let foreign = foreign.map(|record| VaultError::RecordForeign {
            name: record.name.to_string(),
        });
        broken.chain(foreign).collect()
    }

    /// Returns the master key, and the id of the method that unlocked it. Trying a passphrase takes a few hundred
    /// milliseconds of CPU time per passphrase method.
    pub(crate) fn unlock(&self, secret: &UnlockSecret) -> Result<(u16, Key), VaultError> {
        let method = secret.kind();
        let of_kind = self.head.methods.iter().filter(|own| own.kind() == method);
        let mut is_tried = false;
        for own in of_kind {
            is_tried = true;
            if let Some(master) = own.unlock(&self.head.vault, secret)? {
                return Ok((own.id, master));
            }
        }
        Err(if is_tried {
            VaultError::WrongSecret { method }
        } else {
            VaultError::NoMethod { method }
        })
    }

    /// Returns the id of the method that a secret unlocks; `None` if it unlocks none.
    pub async fn method_of(&self, secret: UnlockSecret) -> Result<Option<u16>, VaultError> {
        let (vault, methods) = (self.head.vault.clone(), self.head.methods.clone());
        run_blocking(move || {
            for method in &methods {
                if method.unlock(&vault, &secret)?.is_some() {
                    return Ok(Some(method.id));
                }
            }
            Ok(None)
        })
        .await
    }

    /// Returns whether a secret unlocks this method.
    pub async fn unlocks_method(&self, id: u16, secret: UnlockSecret) -> Result<bool, VaultError> {
        let vault = self.head.vault.clone();
        let methods = self.head.methods.iter().filter(|method| method.id == id);
        let methods: Vec<UnlockMethod> = methods.cloned().collect();
        run_blocking(move || {
            for method in &methods {
                if method.unlock(&vault, &secret)?.is_some() {
                    return Ok(true);
                }
            }
            Ok(false)
        })
        .await
    }

    /// Authenticates the head with the master key and returns its content.
    pub(crate) fn verify(self, keys: &Keys) -> Result<(Head, Vec<VaultRecord>), VaultError> {
        if self.fingerprint != keys.fingerprint {
            return Err(VaultError::KeyOutdated);
        }
        let bytes = authenticated(&self.head.vault.owner, &self.body);
        if !cipher::is_authentic(&keys.manifest, &bytes, &self.code) {
            return Err(VaultError::changed(
                "its manifest is not the one that lango wrote",
            ));
        }
        Ok((self.head, self.records))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::SecretKind;
    use lango_core::Timestamp;

    /// Length of an encoded empty text.
    const EMPTY_TEXT_BYTES: usize = 4;

    /// Returns a head with one secret that has no bindings.
    fn head() -> Head {
        let entry = SecretEntry {
            name: SecretName::new("KEY").unwrap(),
            version: 3,
            kind: SecretKind::ApiKey,
            created: Timestamp(10),
            updated: Timestamp(20),
            expires: None,
            bindings: Vec::new(),
            public_id: None,
            digest: [7; DIGEST_BYTES],
        };
        Head {
            vault: VaultIdentity {
                id: [1; 16],
                owner: UserId::from("ann"),
            },
            revision: 5,
            next_method: 1,
            methods: Vec::new(),
            entries: BTreeMap::from([(entry.name.clone(), entry)]),
        }
    }

    fn read(head: Vec<u8>) -> Result<SealedVault, VaultError> {
        let snapshot = VaultSnapshot {
            revision: 5,
            head,
            records: Vec::new(),
        };
        SealedVault::read(&UserId::from("ann"), snapshot)
    }

    #[test]
    fn heads_of_older_formats_can_be_opened() {
        let keys = Keys::derive(&cipher::random_key().unwrap(), [1; 16]).unwrap();
        let newest = head().encode(&keys);
        assert_eq!(
            read(newest.clone()).unwrap().verify(&keys).unwrap().0,
            head()
        );
        // The body ends with the number of bindings and the length of the public identifier, which are both zero.
        let mut body = newest[..newest.len() - DIGEST_BYTES].to_vec();
        for (format, added) in [(2, EMPTY_TEXT_BYTES), (1, 1)] {
            let end = body.split_off(body.len() - added);
            assert!(end.iter().all(|byte| *byte == 0), "{end:?}");
            body[MAGIC.len()] = format;
            let bytes = authenticated(&UserId::from("ann"), &body);
            let code = cipher::authenticate(&keys.manifest, &bytes);
            let older = [&body[..], &code[..]].concat();
            let opened = read(older.clone()).unwrap().verify(&keys).unwrap().0;
            assert_eq!(opened, head());
            for format in [0, FORMAT + 1] {
                let mut other = older.clone();
                other[MAGIC.len()] = format;
                assert!(read(other).is_err(), "format {format}");
            }
        }
    }

    #[test]
    fn a_public_identifier_is_readable_without_a_key_and_authenticated() {
        let keys = Keys::derive(&cipher::random_key().unwrap(), [1; 16]).unwrap();
        let mut head = head();
        let entry = head.entries.values_mut().next().unwrap();
        entry.public_id = Some("0xabc".into());
        let encoded = head.encode(&keys);
        let sealed = read(encoded.clone()).unwrap();
        let shown = sealed.entries().next().unwrap().public_id.clone();
        assert_eq!(shown.as_deref(), Some("0xabc"));
        assert_eq!(sealed.verify(&keys).unwrap().0, head);
        let at = encoded.windows(5).position(|part| part == b"0xabc");
        let mut changed = encoded;
        changed[at.unwrap() + 4] = b'd';
        let refused = read(changed).unwrap().verify(&keys);
        assert!(matches!(refused, Err(VaultError::Changed { .. })));
    }
}
