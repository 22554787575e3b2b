// Each transaction is mined immediately in its own block, unless a test turns that off.
module.exports = {
  solidity: "0.8.28",
  networks: {
    hardhat: {
      chainId: 84532,
      accounts: { count: 5, accountsBalance: "1000000000000000000000000" },
      initialBaseFeePerGas: 1000000,
      allowBlocksWithSameTimestamp: true,
      loggingEnabled: false,
    },
  },
};
