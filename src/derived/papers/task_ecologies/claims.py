"""The chapter's claims and the experiments that they rest on."""

from . import brackets, codes, languages, networks, slips, texts

CLAIMS = (*codes.CLAIMS, *texts.CLAIMS, *networks.CLAIMS, *languages.CLAIMS, *brackets.CLAIMS, *slips.CLAIMS)
EXACT = (codes.Equidistant, codes.Picture, slips.Slips, texts.Pressure)
IMPOSED = (networks.Imposed, networks.Quotient)
ABROAD = (languages.Abroad, languages.AbroadOrderTwo)
BRACKETS = (brackets.Rescue, brackets.RecipePopulation, brackets.Ruler)
EXPERIMENTS = (*EXACT, *IMPOSED, *ABROAD, *BRACKETS)
