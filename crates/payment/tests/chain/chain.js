// Runs a chain on 127.0.0.1 with the token at the address of USDC on Base Sepolia. Arguments: the folder of the npm packages, and
// a port. Prints `ready`, and exits when its standard input closes, so that no process is left behind.
//
// It does not use Hardhat's command line, which checks for updates on the internet.

const path = require("node:path");
const fs = require("node:fs");

const [folder, port] = process.argv.slice(2);
const load = (name) => require(require.resolve(name, { paths: [folder] }));
process.env.HARDHAT_CONFIG = path.join(__dirname, "hardhat.config.js");
process.chdir(folder);

const TOKEN = "0x036CbD53842c5426634e7929541eC2318f3dCF7e";

function compile() {
  const cached = path.join(folder, "token.json");
  const source = fs.readFileSync(path.join(__dirname, "Token.sol"), "utf8");
  if (fs.existsSync(cached)) {
    const found = JSON.parse(fs.readFileSync(cached, "utf8"));
    if (found.source === source) return found.code;
  }
  const settings = {
    optimizer: { enabled: true, runs: 200 },
    outputSelection: { "*": { "*": ["evm.deployedBytecode.object"] } },
  };
  const input = { language: "Solidity", sources: { "Token.sol": { content: source } }, settings };
  const output = JSON.parse(load("solc").compile(JSON.stringify(input)));
  const failed = (output.errors ?? []).filter((error) => error.severity === "error");
  if (failed.length > 0) throw new Error(failed[0].formattedMessage);
  const code = "0x" + output.contracts["Token.sol"].Token.evm.deployedBytecode.object;
  fs.writeFileSync(cached, JSON.stringify({ source, code }));
  return code;
}

async function main() {
  const code = compile();
  const hre = load("hardhat");
  const provider = hre.network.provider;
  await provider.request({ method: "hardhat_setCode", params: [TOKEN, code] });
  const { JsonRpcServer } = load("hardhat/internal/hardhat-network/jsonrpc/server");
  const server = new JsonRpcServer({ hostname: "127.0.0.1", port: Number(port), provider });
  await server.listen();
  console.log("ready");
}

process.stdin.on("end", () => process.exit(0)).resume();
main().catch((error) => {
  console.error(error);
  process.exit(1);
});
