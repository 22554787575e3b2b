// A host on 127.0.0.1 that demands payment with x402. It verifies and settles payments with the protocol's own packages.
// Arguments: the folder of the npm packages, a port, the URL of the chain, and the private key that pays the network fees. Prints
// `ready`.
//
//   /v1/PRICE, /v2/PRICE   returns content for PRICE millionths of a USDC
//   /greedy/PRICE          version 2; settles nothing and demands payment again
//   /slow/PRICE            version 2; returns the content and settles later, when /settle is requested
//   /counts                returns counts of demands and payments

const http = require("node:http");

const [folder, port, rpc, key] = process.argv.slice(2);
const load = (name) => require(require.resolve(name, { paths: [folder] }));

const { createWalletClient, http: transport, publicActions } = load("viem");
const { privateKeyToAccount } = load("viem/accounts");
const { baseSepolia } = load("viem/chains");
const { x402Facilitator } = load("@x402/core/facilitator");
const { ExactEvmScheme } = load("@x402/evm/exact/facilitator");
const { ExactEvmSchemeV1 } = load("@x402/evm/exact/v1/facilitator");
const { toFacilitatorEvmSigner } = load("@x402/evm");

const ASSET = "0x036CbD53842c5426634e7929541eC2318f3dCF7e";
const PAY_TO = "0x209693Bc6afc0C5328bA36FaF03C514EF312287C";
const EXTRA = { name: "USDC", version: "2" };

const account = privateKeyToAccount(key);
const client = createWalletClient({ account, chain: baseSepolia, transport: transport(rpc) }).extend(publicActions);
const signer = toFacilitatorEvmSigner({ ...client, address: account.address });
const facilitator = new x402Facilitator()
  .register("eip155:84532", new ExactEvmScheme(signer))
  .registerV1("base-sepolia", new ExactEvmSchemeV1(signer));

const counts = { demands: 0, paid: 0, refused: 0, greedy: 0, payments: [] };
const later = [];

const encode = (value) => Buffer.from(JSON.stringify(value)).toString("base64");
const decode = (text) => JSON.parse(Buffer.from(text, "base64").toString());

function demandV1(price, url) {
  return {
    x402Version: 1,
    error: "X-PAYMENT header is required",
    accepts: [
      { scheme: "exact", network: "base", maxAmountRequired: price, asset: ASSET, payTo: PAY_TO, resource: url, description: "", mimeType: "text/plain", maxTimeoutSeconds: 60, extra: EXTRA },
      { scheme: "exact", network: "base-sepolia", maxAmountRequired: price, asset: ASSET, payTo: PAY_TO, resource: url, description: "", mimeType: "text/plain", maxTimeoutSeconds: 60, extra: EXTRA },
    ],
  };
}

function demandV2(price, url) {
  return {
    x402Version: 2,
    error: "PAYMENT-SIGNATURE header is required",
    resource: { url, description: "", mimeType: "text/plain" },
    accepts: [{ scheme: "exact", network: "eip155:84532", amount: price, asset: ASSET, payTo: PAY_TO, maxTimeoutSeconds: 60, extra: EXTRA }],
  };
}

async function serve(request, response) {
  const url = `http://127.0.0.1:${port}${request.url}`;
  const [, kind, price] = request.url.split("/");
  const send = (status, headers, body) => {
    response.writeHead(status, headers);
    response.end(body);
  };
  if (kind === "counts") return send(200, {}, JSON.stringify(counts));
  if (kind === "free") return send(200, {}, "free content");
  if (kind === "moved") return send(302, { location: "/v2/10" }, "");
  if (kind === "settle") {
    for (const [payload, requirements] of later.splice(0)) await facilitator.settle(payload, requirements);
    return send(200, {}, "settled");
  }
  const isV1 = kind === "v1";
  const header = request.headers[isV1 ? "x-payment" : "payment-signature"];
  const demand = isV1 ? demandV1(price, url) : demandV2(price, url);
  const again = (reason) => {
    const body = isV1 ? { ...demand, error: reason } : {};
    const headers = isV1 ? {} : { "payment-required": encode({ ...demand, error: reason }) };
    send(402, { "content-type": "application/json", ...headers }, JSON.stringify(body));
  };
  if (header === undefined) {
    counts.demands += 1;
    return again(demand.error);
  }
  counts.payments.push(header);
  if (kind === "greedy") {
    counts.greedy += 1;
    return again("pay once more");
  }
  const payload = decode(header);
  const requirements = demand.accepts[demand.accepts.length - 1];
  const verified = await facilitator.verify(payload, requirements);
  if (!verified.isValid) {
    counts.refused += 1;
    return again(`invalid: ${verified.invalidReason} ${verified.invalidMessage ?? ""}`);
  }
  if (kind === "slow") {
    later.push([payload, requirements]);
    return send(200, {}, "content on trust");
  }
  const settled = await facilitator.settle(payload, requirements);
  if (!settled.success) {
    counts.refused += 1;
    return again(`not settled: ${settled.errorReason} ${settled.errorMessage ?? ""}`);
  }
  counts.paid += 1;
  send(200, { [isV1 ? "x-payment-response" : "payment-response"]: encode(settled) }, `content for ${price}`);
}

const server = http.createServer((request, response) => {
  serve(request, response).catch((error) => {
    console.error(error);
    response.writeHead(500);
    response.end(String(error));
  });
});
process.stdin.on("end", () => process.exit(0)).resume();
server.listen(Number(port), "127.0.0.1", () => console.log("ready"));
