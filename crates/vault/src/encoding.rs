//! The encoding of all authenticated data: fixed fields in a fixed order, each text preceded by its length, so that
//! different values have different bytes. Decoding accepts exactly what encoding produces.

use crate::error::VaultError;

/// Encodes values.
#[derive(Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    /// Starts with a label, so that bytes for one purpose are never valid for another.
    pub(crate) fn labelled(label: &str) -> Self {
        let mut writer = Self::default();
        writer.text(label);
        writer
    }

    pub(crate) fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(crate) fn short(&mut self, value: u16) {
        self.0.extend(value.to_be_bytes());
    }

    pub(crate) fn int(&mut self, value: u32) {
        self.0.extend(value.to_be_bytes());
    }

    pub(crate) fn long(&mut self, value: u64) {
        self.0.extend(value.to_be_bytes());
    }

    /// Writes an optional number. `None` is encoded differently from every number.
    pub(crate) fn optional_long(&mut self, value: Option<u64>) {
        self.byte(u8::from(value.is_some()));
        self.long(value.unwrap_or_default());
    }

    /// Writes bytes of a fixed length.
    pub(crate) fn array(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.int(u32::try_from(text.len()).unwrap_or(u32::MAX));
        self.0.extend(text.as_bytes());
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// Decodes values.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], VaultError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or_else(|| VaultError::changed("it is truncated"))?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], VaultError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, VaultError> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    pub(crate) fn short(&mut self) -> Result<u16, VaultError> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub(crate) fn int(&mut self) -> Result<u32, VaultError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub(crate) fn long(&mut self) -> Result<u64, VaultError> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    pub(crate) fn optional_long(&mut self) -> Result<Option<u64>, VaultError> {
        match (self.byte()?, self.long()?) {
            (0, 0) => Ok(None),
            (1, value) => Ok(Some(value)),
            _ => Err(VaultError::changed(
                "it has a field that lango never writes",
            )),
        }
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, VaultError> {
        let length = usize::try_from(self.int()?).unwrap_or(usize::MAX);
        let bytes = self.take(length)?;
        std::str::from_utf8(bytes).map_err(|_| VaultError::changed("it has text that is not UTF-8"))
    }

    /// Fails if there are unread bytes.
    pub(crate) fn finish(self) -> Result<(), VaultError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(VaultError::changed("it has more bytes than it should"))
        }
    }
}
