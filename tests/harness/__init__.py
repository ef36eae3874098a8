"""What the tests of several folders share: one face for both engines and both drivers, and normal forms."""
