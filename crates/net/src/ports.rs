//! Ports of protocols other than HTTP. A service there could interpret a request as commands of its own protocol.
//! Therefore the guard refuses a URL with such a port, unless `egress.allow` names the host with the port.

/// The ports that browsers refuse, and those of databases, remote desktops and cluster services.
const OTHER_PROTOCOLS: [u16; 117] = [
    1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 67, 68, 69, 77, 79, 87, 95,
    101, 102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 138, 139, 143, 161, 162,
    179, 389, 427, 445, 465, 500, 512, 513, 514, 515, 526, 530, 531, 532, 540, 543, 544, 548, 554,
    556, 563, 587, 601, 623, 636, 873, 902, 989, 990, 993, 995, 1080, 1099, 1433, 1521, 1719, 1720,
    1723, 2049, 2375, 2376, 2379, 2380, 3128, 3306, 3389, 3659, 4045, 4190, 4369, 5060, 5061, 5432,
    5672, 5900, 5938, 5984, 6000, 6379, 6443, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 9042,
    10080, 10250, 11211, 27017, 27018,
];

/// Returns whether a port usually serves a protocol other than HTTP. Port 0 counts as one.
pub(crate) fn is_other_protocol(port: u16) -> bool {
    port == 0 || OTHER_PROTOCOLS.contains(&port)
}
