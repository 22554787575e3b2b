//! Unlock methods: a passphrase, a key file, or a key in the operating system's keyring. Each method wraps the master
//! key with its own key, so any one of them is enough to unlock the vault, and each can be removed.

mod passphrase;

use crate::cipher::{self, SEALED_KEY_BYTES};
use crate::encoding::{Reader, Writer};
use crate::envelope::VaultIdentity;
use crate::error::VaultError;
use crate::key::Key;
use lango_core::Timestamp;
use lango_secrets::SecretValue;
pub use passphrase::MIN_PASSPHRASE_CHARACTERS;
use passphrase::PassphraseCost;
use std::fmt;

/// Maximum number of unlock methods.
pub const MAX_METHODS: usize = 8;

/// The kind of an unlock method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MethodKind {
    Passphrase,
    KeyFile,
    /// A key in the keyring of the operating system.
    Keyring,
}

impl fmt::Display for MethodKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Passphrase => "passphrase",
            Self::KeyFile => "key file",
            Self::Keyring => "keyring",
        })
    }
}

/// The id of an unlock method with its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodId {
    pub id: u16,
    pub kind: MethodKind,
}

impl fmt::Display for MethodId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.id, self.kind)
    }
}

/// A passphrase or key that unlocks a vault.
#[derive(Debug)]
pub enum UnlockSecret {
    Passphrase(SecretValue),
    /// The key in a key file.
    KeyFile(Key),
    /// The key in the keyring.
    Keyring(Key),
}

impl UnlockSecret {
    pub fn kind(&self) -> MethodKind {
        match self {
            Self::Passphrase(_) => MethodKind::Passphrase,
            Self::KeyFile(_) => MethodKind::KeyFile,
            Self::Keyring(_) => MethodKind::Keyring,
        }
    }
}

impl UnlockSecret {
    /// Returns a copy. `Clone` is not implemented, so that copies of a secret are always explicit.
    pub fn duplicate(&self) -> Self {
        match self {
            Self::Passphrase(passphrase) => Self::Passphrase(SecretValue::new(passphrase.expose())),
            Self::KeyFile(key) => Self::KeyFile(key.duplicate()),
            Self::Keyring(key) => Self::Keyring(key.duplicate()),
        }
    }

    /// Returns whether the kind and the content are the same.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Passphrase(own), Self::Passphrase(other)) => own.expose() == other.expose(),
            (Self::KeyFile(own), Self::KeyFile(other))
            | (Self::Keyring(own), Self::Keyring(other)) => own.expose() == other.expose(),
            _ => false,
        }
    }
}

/// How a method's key is derived from the user's input.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Derivation {
    Passphrase(PassphraseCost),
    KeyFile,
    Keyring,
}

/// An unlock method of a vault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnlockMethod {
    /// Never reused within a vault.
    pub id: u16,
    pub created: Timestamp,
    derivation: Derivation,
    /// The master key, wrapped by the method's key.
    sealed: [u8; SEALED_KEY_BYTES],
}

impl UnlockMethod {
    /// Creates a method that unlocks `master` with `secret`; the head assigns its id. A passphrase costs a few hundred
    /// milliseconds of CPU time.
    pub(crate) fn new(
        created: Timestamp,
        vault: &VaultIdentity,
        secret: &UnlockSecret,
        master: &Key,
    ) -> Result<Self, VaultError> {
        let derivation = match secret {
            UnlockSecret::Passphrase(passphrase) => {
                Derivation::Passphrase(PassphraseCost::measure(passphrase)?)
            }
            UnlockSecret::KeyFile(_) => Derivation::KeyFile,
            UnlockSecret::Keyring(_) => Derivation::Keyring,
        };
        let mut method = Self {
            id: 0,
            created,
            derivation,
            sealed: [0; SEALED_KEY_BYTES],
        };
        method.reseal(vault, secret, master)?;
        Ok(method)
    }

    /// Wraps another master key for the same secret.
    pub(crate) fn reseal(
        &mut self,
        vault: &VaultIdentity,
        secret: &UnlockSecret,
        master: &Key,
    ) -> Result<(), VaultError> {
        let key = self.key(vault, secret)?.ok_or(VaultError::WrongSecret {
            method: secret.kind(),
        })?;
        let sealed = cipher::seal(&key, &self.context(vault), master.expose())?;
        self.sealed.copy_from_slice(&sealed);
        Ok(())
    }

    /// Returns the master key; `None` if this secret does not unlock it.
    pub(crate) fn unlock(
        &self,
        vault: &VaultIdentity,
        secret: &UnlockSecret,
    ) -> Result<Option<Key>, VaultError> {
        let key = self.key(vault, secret)?;
        Ok(key.and_then(|key| cipher::open_key(&key, &self.context(vault), &self.sealed)))
    }

    pub fn kind(&self) -> MethodKind {
        match self.derivation {
            Derivation::Passphrase(_) => MethodKind::Passphrase,
            Derivation::KeyFile => MethodKind::KeyFile,
            Derivation::Keyring => MethodKind::Keyring,
        }
    }

    /// Returns the id together with the kind.
    pub fn described_id(&self) -> MethodId {
        MethodId {
            id: self.id,
            kind: self.kind(),
        }
    }

    /// Derives the key of the method; `None` if the secret is of another kind.
    fn key(&self, vault: &VaultIdentity, secret: &UnlockSecret) -> Result<Option<Key>, VaultError> {
        match (&self.derivation, secret) {
            (Derivation::Passphrase(cost), UnlockSecret::Passphrase(passphrase)) => {
                cost.derive(passphrase).map(Some)
            }
            (Derivation::KeyFile, UnlockSecret::KeyFile(key)) => {
                cipher::derive(key, &vault.id, "lango vault key file").map(Some)
            }
            (Derivation::Keyring, UnlockSecret::Keyring(key)) => {
                cipher::derive(key, &vault.id, "lango vault keyring").map(Some)
            }
            _ => Ok(None),
        }
    }

    fn context(&self, vault: &VaultIdentity) -> Vec<u8> {
        let mut context = Writer::labelled("lango vault unlock method");
        context.array(&vault.id);
        context.text(vault.owner.as_str());
        self.write_identity(&mut context);
        context.into_bytes()
    }

    /// Writes the associated data of the wrapped key. It does not include the id, which is assigned later and
    /// authenticated by the head.
    fn write_identity(&self, to: &mut Writer) {
        to.long(self.created.0);
        match &self.derivation {
            Derivation::Passphrase(cost) => {
                to.byte(1);
                cost.write(to);
            }
            Derivation::KeyFile => to.byte(2),
            Derivation::Keyring => to.byte(3),
        }
    }

    pub(crate) fn write(&self, to: &mut Writer) {
        to.short(self.id);
        self.write_identity(to);
        to.array(&self.sealed);
    }

    pub(crate) fn read(from: &mut Reader<'_>) -> Result<Self, VaultError> {
        Ok(Self {
            id: from.short()?,
            created: Timestamp(from.long()?),
            derivation: match from.byte()? {
                1 => Derivation::Passphrase(PassphraseCost::read(from)?),
                2 => Derivation::KeyFile,
                3 => Derivation::Keyring,
                _ => {
                    return Err(VaultError::changed(
                        "it has an unlock method that lango never writes",
                    ));
                }
            },
            sealed: from.array()?,
        })
    }
}
