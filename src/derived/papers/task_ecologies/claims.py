"""The chapter's claims and the experiments that they rest on."""

from . import brackets, codes, languages, networks, slips, texts

CLAIMS = (*codes.CLAIMS, *texts.CLAIMS, *networks.CLAIMS, *languages.CLAIMS, *brackets.CLAIMS, *slips.CLAIMS)
EXACT = (codes.Equidistant, codes.Picture, slips.Slips, texts.Pressure)
TRAINED = (networks.Imposed, networks.Quotient, languages.Abroad, languages.AbroadOrderTwo)
EXPERIMENTS = (*EXACT, *TRAINED, brackets.Rescue, brackets.RecipePopulation, brackets.Ruler)
